// API functions for several devices, other processes and memory placement, with their results for one device. Included
// at the end of cuda_runtime_api.h. What is not supported returns its error code.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define cudaHostRegisterDefault 0x00
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped 0x02
#define cudaHostRegisterIoMemory 0x04
#define cudaHostRegisterReadOnly 0x08
#define cudaMemAttachHost 0x02
#define cudaMemAttachSingle 0x04
#define cudaPeerAccessDefault 0x00
#define cudaEventInterprocess 0x04
#define cudaIpcMemLazyEnablePeerAccess 0x01
#define cudaInvalidDeviceId (-2)

// A function that only returns a result.
#define SIM_RETURNS(result, name, ...) \
    SIM_API_INLINE cudaError_t name(__VA_ARGS__) { return result; }

// Access to the memory of other devices. There is one device, and it is not its own peer.
enum cudaDeviceP2PAttr {
    cudaDevP2PAttrPerformanceRank = 1,
    cudaDevP2PAttrAccessSupported = 2,
    cudaDevP2PAttrNativeAtomicSupported = 3,
    cudaDevP2PAttrCudaArrayAccessSupported = 4
};

SIM_API_INLINE cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    *can = 0;
    return cudaSuccess;
}
SIM_RETURNS(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess, int peer, unsigned int flags)
SIM_RETURNS(cudaErrorInvalidDevice, cudaDeviceDisablePeerAccess, int peer)
SIM_RETURNS(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute, int* value, enum cudaDeviceP2PAttr attribute, int device,
            int peer)
SIM_API_INLINE cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
    if (to_device || from_device) return cudaErrorInvalidDevice;
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}
SIM_API_INLINE cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                               cudaStream_t stream SIM_DEFAULT(nullptr)) {
    if (to_device || from_device) return cudaErrorInvalidDevice;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
SIM_API_INLINE cudaError_t cudaChooseDevice(int* device, const struct cudaDeviceProp* properties) {
    *device = 0;
    return cudaSuccess;
}
SIM_RETURNS(cudaSuccess, cudaSetValidDevices, int* devices, int count)
SIM_API_INLINE cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    return cudaSetDevice(device);
}
SIM_API_INLINE cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    *flags = cudaDeviceMapHost;
    return cudaSuccess;
}
SIM_API_INLINE cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    if (device != 0) return cudaErrorInvalidDevice;
    const char name[] = "0000:00:00.0";
    for (int i = 0; i < length; ++i) text[i] = i + 1 < length && i < 12 ? name[i] : '\0';
    return cudaSuccess;
}
SIM_API_INLINE cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    *device = 0;
    return cudaSuccess;
}
SIM_API_INLINE cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache* config) {
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}
SIM_RETURNS(cudaSuccess, cudaCtxResetPersistingL2Cache, void)

// Other processes
#define CUDA_IPC_HANDLE_SIZE 64
typedef struct cudaIpcMemHandle_st {
    char reserved[CUDA_IPC_HANDLE_SIZE];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_st {
    char reserved[CUDA_IPC_HANDLE_SIZE];
} cudaIpcEventHandle_t;
SIM_RETURNS(cudaErrorNotSupported, cudaIpcGetMemHandle, cudaIpcMemHandle_t* handle, void* pointer)
SIM_RETURNS(cudaErrorNotSupported, cudaIpcOpenMemHandle, void** pointer, cudaIpcMemHandle_t handle, unsigned int flags)
SIM_RETURNS(cudaErrorNotSupported, cudaIpcCloseMemHandle, void* pointer)
SIM_RETURNS(cudaErrorNotSupported, cudaIpcGetEventHandle, cudaIpcEventHandle_t* handle, cudaEvent_t event)
SIM_RETURNS(cudaErrorNotSupported, cudaIpcOpenEventHandle, cudaEvent_t* event, cudaIpcEventHandle_t handle)

// Hints about managed memory, which never migrates here.
SIM_RETURNS(cudaSuccess, cudaMemPrefetchAsync, const void* pointer, size_t bytes, struct cudaMemLocation location,
            unsigned int flags, cudaStream_t stream SIM_DEFAULT(nullptr))
SIM_RETURNS(cudaSuccess, cudaMemAdvise, const void* pointer, size_t bytes, enum cudaMemoryAdvise advice,
            struct cudaMemLocation location)

// Host memory. Registering pins it, which has no effect here; kernels can access only memory from cudaHostAlloc.
SIM_API_INLINE cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
    return pointer && bytes ? cudaSuccess : cudaErrorInvalidValue;
}
SIM_API_INLINE cudaError_t cudaHostUnregister(void* pointer) { return pointer ? cudaSuccess : cudaErrorInvalidValue; }
SIM_API_INLINE cudaError_t cudaHostGetFlags(unsigned int* flags, void* pointer) {
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
}
SIM_API_INLINE cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
    struct cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, host);
    if (attributes.type == cudaMemoryTypeUnregistered) return cudaErrorNotSupported;
    *device = host;
    return cudaSuccess;
}

// Memory pools: all of their memory belongs to the device.
enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic = 2,
    cudaMemPoolReuseAllowInternalDependencies = 3,
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrReservedMemHigh = 6,
    cudaMemPoolAttrUsedMemCurrent = 7,
    cudaMemPoolAttrUsedMemHigh = 8
};
enum cudaMemAccessFlags {
    cudaMemAccessFlagsProtNone = 0,
    cudaMemAccessFlagsProtRead = 1,
    cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemAccessDesc {
    struct cudaMemLocation location;
    enum cudaMemAccessFlags flags;
};
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid = 0, cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType {
    cudaMemHandleTypeNone = 0,
    cudaMemHandleTypePosixFileDescriptor = 1,
    cudaMemHandleTypeFabric = 8
};
struct cudaMemPoolProps {
    enum cudaMemAllocationType allocType;
    enum cudaMemAllocationHandleType handleTypes;
    struct cudaMemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
SIM_API_INLINE cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const struct cudaMemPoolProps* properties) {
    return cudaDeviceGetDefaultMemPool(pool, 0);
}
SIM_RETURNS(cudaSuccess, cudaMemPoolDestroy, cudaMemPool_t pool)
SIM_API_INLINE cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return cudaDeviceGetDefaultMemPool(pool, device);
}
SIM_RETURNS(cudaSuccess, cudaDeviceSetMemPool, int device, cudaMemPool_t pool)
SIM_RETURNS(cudaSuccess, cudaMemPoolSetAttribute, cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void* value)
SIM_API_INLINE cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void* value) {
    size_t all, free_bytes;
    cudaMemGetInfo(&free_bytes, &all);
    if (attribute <= cudaMemPoolReuseAllowInternalDependencies)
        *(int*)value = 1;
    else
        *(unsigned long long*)value = attribute == cudaMemPoolAttrReleaseThreshold ? 0 : all - free_bytes;
    return cudaSuccess;
}
SIM_RETURNS(cudaSuccess, cudaMemPoolSetAccess, cudaMemPool_t pool, const struct cudaMemAccessDesc* access, size_t count)
SIM_API_INLINE cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                                struct cudaMemLocation* location) {
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
}

// Hints for a stream
enum cudaAccessProperty {
    cudaAccessPropertyNormal = 0,
    cudaAccessPropertyStreaming = 1,
    cudaAccessPropertyPersisting = 2
};
struct cudaAccessPolicyWindow {
    void* base_ptr;
    size_t num_bytes;
    float hitRatio;
    enum cudaAccessProperty hitProp;
    enum cudaAccessProperty missProp;
};
typedef enum cudaStreamAttrID {
    cudaStreamAttributeAccessPolicyWindow = 1,
    cudaStreamAttributePriority = 8
} cudaStreamAttrID;
#define cudaLaunchAttributeAccessPolicyWindow cudaStreamAttributeAccessPolicyWindow
typedef union cudaStreamAttrValue {
    struct cudaAccessPolicyWindow accessPolicyWindow;
    int priority;
} cudaStreamAttrValue;
SIM_RETURNS(cudaSuccess, cudaStreamSetAttribute, cudaStream_t stream, cudaStreamAttrID attribute,
            const cudaStreamAttrValue* value)
SIM_RETURNS(cudaSuccess, cudaStreamAttachMemAsync, cudaStream_t stream, void* pointer, size_t bytes SIM_DEFAULT(0),
            unsigned int flags SIM_DEFAULT(cudaMemAttachSingle))

#undef SIM_RETURNS
#pragma GCC diagnostic pop
