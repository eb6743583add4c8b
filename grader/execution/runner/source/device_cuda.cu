// The runner's device on a machine with a GPU: a kernel that nvcc compiled to a shared library.
//
// Every tensor lies between two guard zones of device memory. The guards of an output hold bytes from the parent and are
// copied back after the call, so that the parent detects an out-of-bounds write. The guards of an input have all bits
// set, a NaN in every floating-point type, so that an out-of-bounds read changes the result.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

namespace {

void* kernel = nullptr;

// Allocations of a call. The destructor frees them.
struct Allocations {
    void* base[MAX_SETS * MAX_ARGUMENTS + 1];
    int count = 0;

    ~Allocations() {
        for (int i = 0; i < count; ++i) cudaFree(base[i]);
    }
};

// The first CUDA error of a call, which is reported to the parent.
struct Status {
    cudaError_t code = cudaSuccess;

    bool ok(cudaError_t result, const char* doing, Text& reply) {
        if (result == cudaSuccess || code != cudaSuccess) return code == cudaSuccess;
        code = result;
        reply.add("remark %s %s: %s\n", doing, cudaGetErrorName(result), cudaGetErrorString(result));
        return false;
    }
};

bool is_tensor(const Argument& a) { return a.kind == ArgumentKind::input || a.kind == ArgumentKind::output; }

bool place(Call& call, ArgumentSet& set, Allocations& memory, Status& status, Text& reply) {
    const cudaMemcpyKind to_device = call.on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    for (int i = 0; i < set.count; ++i) {
        Argument& a = set.arguments[i];
        if (!is_tensor(a)) continue;
        size_t whole = GUARD_BYTES + a.shift + a.bytes + GUARD_BYTES;
        void* base = nullptr;
        cudaError_t result = cudaMalloc(&base, whole);
        if (result == cudaErrorMemoryAllocation) reply.add("remark memory %s\n", a.name);
        if (!status.ok(result, "setup", reply)) return false;
        memory.base[memory.count++] = base;
        unsigned char* data = static_cast<unsigned char*>(base) + GUARD_BYTES + a.shift;
        a.device = data;
        if (a.kind == ArgumentKind::input) {
            if (!status.ok(cudaMemset(base, 0xFF, whole), "setup", reply)) return false;
            result = cudaMemcpy(data, call.input + a.place, a.bytes, to_device);
        } else {
            const unsigned char* from = call.output + a.place - GUARD_BYTES;
            result = cudaMemcpy(data - GUARD_BYTES, from, a.bytes + 2 * GUARD_BYTES, to_device);
        }
        if (!status.ok(result, "setup", reply)) return false;
    }
    return status.ok(cudaDeviceSynchronize(), "setup", reply);
}

// Copies outputs with their guards back to the parent.
void fetch(Call& call, ArgumentSet& set, Status& status, Text& reply) {
    const cudaMemcpyKind to_parent = call.on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
    for (int i = 0; i < set.count; ++i) {
        Argument& a = set.arguments[i];
        if (a.kind != ArgumentKind::output) continue;
        const unsigned char* data = static_cast<unsigned char*>(a.device) - GUARD_BYTES;
        unsigned char* to = call.output + a.place - GUARD_BYTES;
        status.ok(cudaMemcpy(to, data, a.bytes + 2 * GUARD_BYTES, to_parent), "fetch", reply);
    }
    // The host does not wait for a copy from device to device.
    if (call.on_device) status.ok(cudaDeviceSynchronize(), "fetch", reply);
}

void remark_changed_inputs(Call& call, ArgumentSet& set, Status& status, Text& reply) {
    for (int i = 0; i < set.count; ++i) {
        Argument& a = set.arguments[i];
        if (a.kind != ArgumentKind::input || a.bytes == 0) continue;
        void* copy = malloc(a.bytes);
        if (copy == nullptr) continue;
        if (status.ok(cudaMemcpy(copy, a.device, a.bytes, cudaMemcpyDeviceToHost), "fetch", reply) &&
            memcmp(copy, call.input + a.place, a.bytes) != 0)
            reply.add("remark changed %s\n", a.name);
        free(copy);
    }
}

// Keeps the device busy for some time. Launches after it wait in the queue, and then run without gaps between them.
__global__ void wait_a_while(unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

// Reads memory that no kernel uses, which evicts all other data from the cache. The write is practically never executed;
// it keeps the compiler from removing the reads.
__global__ void read_all(unsigned* words, size_t count) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
         i += static_cast<size_t>(gridDim.x) * blockDim.x)
        sum += words[i];
    if (sum == 0x12345679u) words[count] = sum;
}

enum { MAX_RUNS = 4096 };

// Measures the device memory that a launcher allocates: memory that it keeps, and memory from the default pool
// (cudaMallocAsync), most of which is freed before a call returns.
struct LauncherMemory {
    static long long kept;  // by all calls of this process
    cudaMemPool_t pool = nullptr;
    size_t free_before = 0;

    void begin(Status& status, Text& reply) {
        unsigned long long zero = 0;
        size_t all = 0;
        if (cudaDeviceGetDefaultMemPool(&pool, 0) != cudaSuccess) pool = nullptr;  // a device without memory pools
        if (pool) status.ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero), "setup", reply);
        status.ok(cudaMemGetInfo(&free_before, &all), "setup", reply);
    }

    void end(Status& status, Text& reply) {
        unsigned long long now = 0, high = 0;
        size_t free_after = 0, all = 0;
        status.ok(cudaMemGetInfo(&free_after, &all), "run", reply);
        if (pool) {
            status.ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &now), "run", reply);
            status.ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &high), "run", reply);
        }
        kept += static_cast<long long>(free_before) - static_cast<long long>(free_after);
        const long long pooled = high > now ? static_cast<long long>(high - now) : 0;
        reply.add("remark allocated %lld\n", (kept > 0 ? kept : 0) + pooled);
    }
};

long long LauncherMemory::kept = 0;

// Returns a function of the CUDA driver; null if the driver does not have it.
template <typename F>
F driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library != nullptr ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}

// Memory that another process created with cuMemCreate and passed as a file descriptor.
struct Mapping {
    decltype(&cuMemImportFromShareableHandle) import_ =
        driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle");
    decltype(&cuMemAddressReserve) reserve = driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
    decltype(&cuMemMap) map = driver<decltype(&cuMemMap)>("cuMemMap");
    decltype(&cuMemSetAccess) allow = driver<decltype(&cuMemSetAccess)>("cuMemSetAccess");
    decltype(&cuMemCreate) create = driver<decltype(&cuMemCreate)>("cuMemCreate");
    decltype(&cuMemRelease) release = driver<decltype(&cuMemRelease)>("cuMemRelease");
    decltype(&cuMemUnmap) unmap = driver<decltype(&cuMemUnmap)>("cuMemUnmap");
    decltype(&cuMemAddressFree) give_back = driver<decltype(&cuMemAddressFree)>("cuMemAddressFree");
    CUdeviceptr address = 0;
    size_t size = 0;
};

__global__ void nothing() {}

Mapping& mapping() {
    static Mapping whole;
    return whole;
}

}  // namespace

namespace device {

bool prepare(Text& reply) {
    cudaError_t result = cudaFree(nullptr);  // creates the context, which takes tenths of a second
    if (result != cudaSuccess) reply.add("error the GPU cannot be used: %s", cudaGetErrorString(result));
    return result == cudaSuccess;
}

bool load(char* lines, Text& reply) {
    while (char* line = next_line(lines)) {
        if (strncmp(line, "kernel ", 7) != 0) continue;
        kernel = dlopen(line + 7, RTLD_NOW | RTLD_LOCAL);
        if (kernel == nullptr) {
            reply.add("error %s", dlerror());
            return false;
        }
    }
    return prepare(reply) && kernel != nullptr;
}

Thunk find(const char* launcher) {
    char name[MAX_NAME + 16];
    snprintf(name, sizeof name, "grader_call_%s", launcher);
    return reinterpret_cast<Thunk>(dlsym(kernel, name));
}

int call(Call& call, Thunk thunk, Text& reply) {
    Allocations memory;
    Status status;
    ArgumentSet& set = call.set[0];
    if (!place(call, set, memory, status, reply)) return status.code;

    void* pointers[MAX_ARGUMENTS];
    fill_pointers(set, pointers);
    int code = thunk(pointers);
    if (code < 0) return code;  // the launcher threw an exception
    status.ok(static_cast<cudaError_t>(code), "launch", reply);
    cudaError_t finished = cudaDeviceSynchronize();
    if (status.code == cudaSuccess) status.ok(finished, "run", reply);
    if (finished == cudaSuccess) {
        Status fetched;
        fetch(call, set, fetched, reply);
        remark_changed_inputs(call, set, fetched, reply);
        if (status.code == cudaSuccess) status.code = fetched.code;
    }
    fflush(stdout);
    return status.code;
}

int time(Call& call, Thunk thunk, Text& reply) {
    static cudaEvent_t begin[MAX_RUNS], end[MAX_RUNS];
    static void* pointers[MAX_SETS][MAX_ARGUMENTS];
    int runs = call.runs < MAX_RUNS ? call.runs : MAX_RUNS;
    Allocations memory;
    Status status;
    for (int s = 0; s < call.sets; ++s) {
        if (!place(call, call.set[s], memory, status, reply)) return status.code;
        fill_pointers(call.set[s], pointers[s]);
    }
    unsigned* other = nullptr;
    if (call.flush != 0) {
        if (!status.ok(cudaMalloc(&other, call.flush + sizeof(unsigned)), "setup", reply)) return status.code;
        memory.base[memory.count++] = other;
    }
    for (int i = 0; i < runs; ++i) {
        status.ok(cudaEventCreate(&begin[i]), "setup", reply);
        if (!status.ok(cudaEventCreate(&end[i]), "setup", reply)) return status.code;
    }
    wait_a_while<<<1, 1>>>(0);  // loads this kernel, so that its code is not counted as memory of the launcher
    if (!status.ok(cudaDeviceSynchronize(), "setup", reply)) return status.code;
    LauncherMemory launcher;
    launcher.begin(status, reply);
    for (int run = 0; run < call.warmup; ++run)
        if (!status.ok(static_cast<cudaError_t>(thunk(pointers[run % call.sets])), "launch", reply)) return status.code;
    if (!status.ok(cudaDeviceSynchronize(), "run", reply)) return status.code;

    // Keep the device busy for 20 us per run, about the host time of a launch, so that the next run is always queued.
    unsigned long long queue = 20000ull * static_cast<unsigned long long>(runs) + 200000ull;
    wait_a_while<<<1, 1>>>(queue < 50000000ull ? queue : 50000000ull);
    for (int run = 0; run < runs; ++run) {
        if (call.flush != 0) read_all<<<1024, 256>>>(other, call.flush / sizeof(unsigned));
        cudaEventRecord(begin[run]);
        int code = thunk(pointers[(run + call.warmup) % call.sets]);
        cudaEventRecord(end[run]);
        if (!status.ok(static_cast<cudaError_t>(code), "launch", reply)) return status.code;
    }
    if (!status.ok(cudaDeviceSynchronize(), "run", reply)) return status.code;
    launcher.end(status, reply);

    for (int run = 0; run < runs; ++run) {
        float milliseconds = 0;
        status.ok(cudaEventElapsedTime(&milliseconds, begin[run], end[run]), "run", reply);
        char line[64];
        int length = snprintf(line, sizeof line, "%.3f\n", static_cast<double>(milliseconds) * 1e3);
        if (call.report >= 0) write_all(call.report, line, static_cast<size_t>(length));
        cudaEventDestroy(begin[run]);
        cudaEventDestroy(end[run]);
    }
    fetch(call, call.set[0], status, reply);
    return status.code;
}

unsigned char* mapped_memory() { return reinterpret_cast<unsigned char*>(mapping().address); }

void unmap() {
    Mapping& m = mapping();
    if (m.address == 0) return;
    m.unmap(m.address, m.size);
    m.give_back(m.address, m.size);
    m.address = 0;
}

// Maps an allocation and releases its handle: the mapping keeps the memory.
CUresult map_handle(CUmemGenericAllocationHandle handle, size_t bytes) {
    Mapping& m = mapping();
    CUdeviceptr address = 0;
    CUresult result = m.reserve(&address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) result = m.map(address, bytes, 0, handle, 0);
    m.release(handle);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = 0;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (result == CUDA_SUCCESS) result = m.allow(address, bytes, &access, 1);
    if (result == CUDA_SUCCESS) {
        m.address = address;
        m.size = bytes;
    }
    return result;
}

bool can_map(const Mapping& m) {
    return m.import_ && m.create && m.reserve && m.map && m.allow && m.release && m.unmap && m.give_back;
}

void wake() {
    enum { TIMES = 8, BYTES = 2 << 20 };
    Mapping& m = mapping();
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = 0;
    for (int i = 0; i < TIMES && can_map(m); ++i) {
        unmap();
        CUmemGenericAllocationHandle handle;
        if (m.create(&handle, BYTES, &wanted, 0) == CUDA_SUCCESS) map_handle(handle, BYTES);
        nothing<<<1, 32>>>();
        cudaDeviceSynchronize();
    }
    unmap();
}

bool map(int file, size_t bytes, Text& reply) {
    Mapping& m = mapping();
    if (!can_map(m)) {
        reply.add("error the driver cannot share memory");
        return false;
    }
    unmap();
    CUmemGenericAllocationHandle handle;
    void* as_handle = reinterpret_cast<void*>(static_cast<uintptr_t>(file));
    CUresult result = m.import_(&handle, as_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result == CUDA_SUCCESS) result = map_handle(handle, bytes);
    if (result != CUDA_SUCCESS)
        reply.add("error the memory cannot be mapped: the CUDA driver gives error %d", static_cast<int>(result));
    return result == CUDA_SUCCESS;
}

int run(Call& call, size_t outputs, Thunk thunk, Text& reply) {
    Status status;
    ArgumentSet& set = call.set[0];
    for (int i = 0; i < set.count; ++i) {
        Argument& a = set.arguments[i];
        if (!is_tensor(a)) continue;
        const size_t from = a.kind == ArgumentKind::input ? 0 : outputs;
        a.device = reinterpret_cast<void*>(mapping().address + from + a.place);
    }
    void* pointers[MAX_ARGUMENTS];
    fill_pointers(set, pointers);
    int code = thunk(pointers);
    status.ok(static_cast<cudaError_t>(code < 0 ? cudaErrorUnknown : code), "launch", reply);
    cudaError_t finished = cudaDeviceSynchronize();
    if (status.code == cudaSuccess) status.ok(finished, "run", reply);
    return status.code;
}

bool writer(const char*, size_t, unsigned[6]) { return false; }

}  // namespace device
