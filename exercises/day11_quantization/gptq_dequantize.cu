// The weights of a layer in GPTQ's int4 format, as f16: w = (q - zero) * scale.
//
//   qweight: [in_features / 8, out_features], eight q per word along k     g_idx: [in_features], the group of each k
//   qzeros: [groups, out_features / 8], eight zeros per word along n, each stored minus 1
//   scales: [groups, out_features]     out: [in_features, out_features]
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// TODO: a kernel in which a thread computes eight rows by eight columns of out
// TODO:   - eight words of qweight in two 16-byte loads; bits 4 j ... 4 j + 3 of a word are row j
// TODO:   - zeros and scales of the group of each row, read again only where the group changes; zero = stored + 1
// TODO:   - q - zero is exact in half, so only the multiplication rounds; 16-byte stores

extern "C" void gptq_dequantize(const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                                __half* out, int in_features, int out_features, cudaStream_t stream) {
    if (in_features == 0 || out_features == 0) return;
    // TODO: launch it.
}
