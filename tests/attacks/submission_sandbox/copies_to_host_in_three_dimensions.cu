// The launcher copies from the device to the host by cudaMemcpy3D.
// Expected finding: host_copies.
static float rows[2][32];
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(const_cast<float*>(x), 64, 16, 2);
    copy.dstPtr = make_cudaPitchedPtr(rows, 128, 32, 2);
    copy.extent = make_cudaExtent(64, 2, 1);
    copy.kind = cudaMemcpyDeviceToHost;
    cudaMemcpy3D(&copy);
}
