// Memory and copies, for the API functions that build on them.
#pragma once

#include "cuda_runtime_api.h"
#include "events.h"
#include "operation.h"

namespace sim {

// Allocates memory and stores its address in *pointer. For a submission's call, the caller has checked that it may
// write there.
cudaError_t allocate_memory(const char* call, events::MemoryKind kind, void** pointer, size_t bytes,
                            const void* caller);
// Frees memory and synchronizes the whole device, as cudaFree does.
cudaError_t release_memory(const char* call, void* pointer, const void* caller);
cudaError_t copy_rows(const char* call, const Rows& rows, cudaMemcpyKind kind, cudaStream_t stream, bool async,
                      const void* caller);
cudaError_t copy_box(const char* call, const cudaMemcpy3DParms* copy, cudaStream_t stream, bool async,
                     const void* caller);
cudaError_t fill_rows(const char* call, const Rows& rows, cudaStream_t stream, const void* caller);

}  // namespace sim
