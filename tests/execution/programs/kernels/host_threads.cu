// Host threads that wait for a host function in a stream, by each kind of synchronization. In some cases, the thread
// does not really wait. argv[1] selects the case.
#include <cuda_runtime.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

static int* numbers;
static const int count = 64;
static int sum;
static std::mutex mutex, other_mutex;
static std::shared_mutex shared;
static std::condition_variable told;
static bool done = false;
static std::atomic<bool> flag(false);
static volatile bool old_flag = false;
static sem_t semaphore;
static pthread_barrier_t barrier;
static std::promise<void> promise;
static std::thread worker;
static cudaStream_t other_stream;

__global__ void increment(int* x) { x[threadIdx.x] += threadIdx.x; }

static void read() {
    sum = 0;
    for (int i = 0; i < count; ++i) sum += numbers[i];  // the read
}

static void submit() {
    increment<<<1, count, 0, other_stream>>>(numbers);  // the launch
    cudaStreamSynchronize(other_stream);
    read();
}

static bool is(const char* how, const char* name) { return !strcmp(how, name); }

static void function(void* data) {
    const char* how = static_cast<const char*>(data);
    if (is(how, "child")) worker = std::thread(read);
    if (is(how, "grandchild")) worker = std::thread([] { std::thread(read).join(); });
    if (is(how, "join")) worker = std::thread([] {});
    if (is(how, "launch")) worker = std::thread(submit);
    if (is(how, "condition") || is(how, "another mutex")) {
        std::lock_guard<std::mutex> lock(is(how, "condition") ? mutex : other_mutex);
        done = true;
        told.notify_one();
    }
    if (is(how, "shared mutex")) {
        std::unique_lock<std::shared_mutex> lock(shared);
        done = true;
    }
    flag = true;
    if (is(how, "volatile")) old_flag = true;
    if (is(how, "semaphore")) sem_post(&semaphore);
    if (is(how, "promise")) promise.set_value();
    if (is(how, "barrier")) pthread_barrier_wait(&barrier);
}

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "";
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, nullptr, 2);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamCreate(&other_stream);
    cudaMallocHost(&numbers, count * sizeof(int));
    std::thread waiting;
    if (is(how, "barrier")) {
        waiting = std::thread([] {
            pthread_barrier_wait(&barrier);
            read();
        });
    }
    for (int i = 0; i < count; ++i) numbers[i] = 1;
    increment<<<1, count, 0, stream>>>(numbers);  // unordered
    cudaLaunchHostFunc(stream, function, argv[1]);

    if (is(how, "child") || is(how, "grandchild") || is(how, "join") || is(how, "launch")) worker.join();
    if (is(how, "join")) read();
    if (is(how, "condition")) {
        std::unique_lock<std::mutex> lock(mutex);
        told.wait(lock, [] { return done; });
        read();
    }
    if (is(how, "shared mutex")) {
        std::shared_lock<std::shared_mutex> lock(shared);
        if (done) read();
    }
    if (is(how, "atomic")) {
        while (!flag.load()) {
        }
        read();
    }
    if (is(how, "volatile")) {
        while (!old_flag) {
        }
        read();
    }
    if (is(how, "semaphore")) {
        sem_wait(&semaphore);
        read();
    }
    if (is(how, "promise")) {
        promise.get_future().wait();
        read();
    }
    if (is(how, "barrier")) waiting.join();

    // These threads do not synchronize with the stream.
    if (is(how, "nothing")) read();
    if (is(how, "another thread")) std::thread(read).join();
    if (is(how, "another launch")) std::thread(submit).join();
    if (is(how, "another mutex")) {
        std::lock_guard<std::mutex> lock(mutex);
        read();
    }
    if (is(how, "another order")) {
        read();
        while (!flag.load()) {
        }
    }
    printf("%d\n", sum);
    cudaDeviceSynchronize();
    cudaFreeHost(numbers);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other_stream);
    return 0;
}
