// cuTensorMapEncodeTiled: refuses what the driver refuses, with a finding that names the argument and the reason.
#include <stdio.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "encoded_map.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"
#include "tensor_map.h"

namespace {

using namespace sim;

constexpr const char* name = "cuTensorMapEncodeTiled";

// CUDA's and the simulator's element types have the same order.
static_assert(int(ElementType::u8) == CU_TENSOR_MAP_DATA_TYPE_UINT8, "same order");
static_assert(int(ElementType::bf16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "same order");

bool is_float(ElementType type) {
    return type == ElementType::f16 || type == ElementType::bf16 || type == ElementType::f32 ||
           type == ElementType::f64;
}

template <typename... Values>
CUresult invalid(const char* format, Values... values) {
    char why[224];
    snprintf(why, sizeof why, format, values...);
    events::refused(nullptr, name, CUDA_ERROR_INVALID_VALUE, why);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult not_simulated(const char* what) {
    char why[224];
    snprintf(why, sizeof why, "the simulator does not support %s", what);
    events::refused(nullptr, name, CUDA_ERROR_NOT_SUPPORTED, why);
    return CUDA_ERROR_NOT_SUPPORTED;
}

const char* not_simulated_type(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
            return "CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ";
        case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
            return "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32";
        case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
            return "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ";
        case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
        case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
        case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
            return "tensors of 4-bit or 6-bit elements";
        default:
            return nullptr;
    }
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType data_type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* boxes,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill oob_fill) {
    if (!map || reinterpret_cast<uintptr_t>(map) % 64)
        return invalid("tensorMap is %p: it must be aligned to 64 bytes", static_cast<void*>(map));
    if (const char* what = not_simulated_type(data_type)) return not_simulated(what);
    if (data_type > CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) return invalid("tensorDataType is %d", int(data_type));
    auto type = static_cast<ElementType>(data_type);
    unsigned element = bytes_of(type);
    if (rank < 1 || rank > max_dimensions) return invalid("tensorRank is %u: it must be 1 to 5", rank);
    sandbox::result(map);
    if (!address || reinterpret_cast<uintptr_t>(address) % 16)
        return invalid("globalAddress is %p: it must be aligned to 16 bytes", address);
    if (!sizes || !boxes || !steps || (rank > 1 && !strides))
        return invalid("globalDim, globalStrides, boxDim or elementStrides is a null pointer");
    if (interleave == CU_TENSOR_MAP_INTERLEAVE_16B) return not_simulated("CU_TENSOR_MAP_INTERLEAVE_16B");
    if (interleave == CU_TENSOR_MAP_INTERLEAVE_32B) return not_simulated("CU_TENSOR_MAP_INTERLEAVE_32B");
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return invalid("interleave is %d", int(interleave));
    if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) return invalid("swizzle is %d", int(swizzle));
    if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return not_simulated("CU_TENSOR_MAP_SWIZZLE_128B_ATOM_* (of sm_100)");
    if (promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B) return invalid("l2Promotion is %d", int(promotion));
    if (oob_fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) return invalid("oobFill is %d", int(oob_fill));
    if (oob_fill && !is_float(type))
        return invalid("oobFill requests NaN, but tensorDataType is not a floating-point type");

    EncodedMap encoded;
    memset(&encoded, 0, sizeof encoded);
    for (unsigned d = 0; d < rank; ++d) {
        if (sizes[d] == 0 || sizes[d] > uint64_t(1) << 32)
            return invalid("globalDim[%u] is %llu: it must be 1 to 2^32", d, static_cast<unsigned long long>(sizes[d]));
        if (boxes[d] == 0 || boxes[d] > 256) return invalid("boxDim[%u] is %u: it must be 1 to 256", d, boxes[d]);
        if (steps[d] == 0 || steps[d] > 8) return invalid("elementStrides[%u] is %u: it must be 1 to 8", d, steps[d]);
        encoded.last[d] = static_cast<uint32_t>(sizes[d] - 1);
        encoded.box[d] = static_cast<uint16_t>(boxes[d]);
        encoded.step[d] = static_cast<uint8_t>(steps[d]);
    }
    for (unsigned d = 0; d + 1 < rank; ++d) {
        auto stride = static_cast<unsigned long long>(strides[d]);
        if (stride % 16 || stride >= 1ull << 40)
            return invalid("globalStrides[%u] is %llu bytes: it must be a multiple of 16 and below 2^40", d, stride);
        encoded.stride[d] = strides[d];
    }
    unsigned row = boxes[0] * element;
    if (row % 16) {
        return invalid("boxDim[0] is %u, with elements of %u bytes: a row of the box must be a multiple of 16 bytes",
                       boxes[0], element);
    }
    if (unsigned span = swizzle ? 16u << swizzle : 0) {
        if (row > span) {
            return invalid(
                "boxDim[0] is %u, with elements of %u bytes: a row of the box must not exceed the %u bytes of the "
                "swizzle",
                boxes[0], element, span);
        }
        if (row < span) return not_simulated("boxes with rows shorter than the swizzle span");
    }
    encoded.address = reinterpret_cast<uintptr_t>(address);
    encoded.dimensions = static_cast<uint8_t>(rank);
    encoded.type = static_cast<uint8_t>(type);
    encoded.swizzle = static_cast<uint8_t>(swizzle);
    encoded.fill_nan = oob_fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    encoded.checksum = checksum(encoded);
    memset(map, 0, sizeof *map);
    memcpy(map, &encoded, sizeof encoded);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
    constexpr const char* call = "cudaGetDriverEntryPointByVersion";
    if (!symbol || !function)
        return refuse(call, cudaErrorInvalidValue, "the name or the pointer to the function is null");
    if (flags > cudaEnablePerThreadDefaultStream) return refuse(call, cudaErrorInvalidValue, "flags has unknown bits");
    *sandbox::result(function) = nullptr;
    auto result = cudaDriverEntryPointSymbolNotFound;
    if (!strcmp(symbol, name)) {
        result = version < 12000 ? cudaDriverEntryPointVersionNotSufficent : cudaDriverEntryPointSuccess;
        if (version >= 12000) sandbox::lend(*function = reinterpret_cast<void*>(&cuTensorMapEncodeTiled));
    }
    if (status) *sandbox::result(status) = result;
    if (result == cudaDriverEntryPointSymbolNotFound) {
        char why[160];
        snprintf(why, sizeof why,
                 "the simulator does not support %.80s: its only driver function is cuTensorMapEncodeTiled", symbol);
        events::refused(nullptr, call, CUDA_ERROR_NOT_FOUND, why);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDA_VERSION, flags, status);
}

}  // extern "C"
