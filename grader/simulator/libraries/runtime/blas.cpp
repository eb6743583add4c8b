// cuBLAS: each call is an operation of its stream, performed by plain loops. Its operands must be device memory. Bounds
// and conflicts with other streams are checked, uninitialized elements are not.
#include "cublas_v2.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"
#include "runtime/captures.h"
#include "runtime/operation.h"
#include "submission_sandbox/sandbox.h"
#include "runtime/events.h"
#include "sim/small_float.h"
#include "runtime/streams.h"
#include "runtime/thread.h"

#define CALLER __builtin_return_address(0)

struct cublasContext {
    bool used;
    cudaStream_t stream;
    cublasPointerMode_t mode;
};

namespace sim::blas {

namespace {

constexpr size_t max_handles = 65536;  // programs that create one for each call do without cublasDestroy
cublasContext handles[max_handles];

bool is_handle(cublasHandle_t handle) { return handle >= handles && handle < handles + max_handles && handle->used; }

// The types of elements: how they are stored, the number that stored `bits` stand for, and how a number `value` is stored.
#define ELEMENTS(ELEMENT)                                                              \
    ELEMENT(CUDA_R_64F, double, bits, value)                                           \
    ELEMENT(CUDA_R_32F, float, bits, value)                                            \
    ELEMENT(CUDA_R_32I, int32_t, bits, value)                                          \
    ELEMENT(CUDA_R_16F, uint16_t, F16::decode(bits), small_from_double<F16>(value))    \
    ELEMENT(CUDA_R_16BF, uint16_t, BF16::decode(bits), small_from_double<BF16>(value)) \
    ELEMENT(CUDA_R_8I, int8_t, bits, value)

// Returns 0 for another type.
size_t bytes_of(cudaDataType type) {
#define BYTES(TYPE, T, number, stored) \
    if (type == TYPE) return sizeof(T);
    ELEMENTS(BYTES)
    return 0;
}

double get(const void* data, cudaDataType type, size_t i) {
#define GET(TYPE, T, number, stored)                                                  \
    if (type == TYPE) {                                                               \
        T bits;                                                                       \
        memcpy(&bits, static_cast<const char*>(data) + i * sizeof bits, sizeof bits); \
        return static_cast<double>(number);                                           \
    }
    ELEMENTS(GET)
    return 0;
}

void set(void* data, cudaDataType type, size_t i, double value) {
#define SET(TYPE, T, number, stored)                                            \
    if (type == TYPE) {                                                         \
        T bits = static_cast<T>(stored);                                        \
        memcpy(static_cast<char*>(data) + i * sizeof bits, &bits, sizeof bits); \
    }
    ELEMENTS(SET)
}

// One call of cuBLAS, with the name for findings and its status so far.
class Call {
  public:
    Call(const char* name, cublasHandle_t handle, const void* caller) : name_(name), handle_(handle), caller_(caller) {
        if (!is_handle(handle)) return;
        stream_ = handle->stream;
        mode_ = handle->mode;
    }

    // Uses these instead of the handle's.
    void use(cudaStream_t stream, cublasPointerMode_t mode) {
        stream_ = stream;
        mode_ = mode;
    }

    void fails(cublasStatus_t status, const char* why) {
        if (good()) events::refused(nullptr, name_, cudaErrorInvalidValue, why, caller_);
        status_ = status;
    }
    bool good() const { return status_ == CUBLAS_STATUS_SUCCESS; }

    // Returns whether all bytes are in device memory.
    bool on_device(const void* data, size_t bytes) {
        GlobalVariable variable;
        const char* end = static_cast<const char*>(data) + bytes;
        bool inside =
            arena::contains(data, bytes) || (find_global(data, &variable) && end <= variable.base + variable.bytes);
        if (!inside)
            fails(CUBLAS_STATUS_EXECUTION_FAILED, "an operand is not in device memory, or has too few elements there");
        return inside;
    }

    double scalar(const void* at, cudaDataType type, double otherwise) {
        if (!at) return otherwise;
        if (mode_ == CUBLAS_POINTER_MODE_DEVICE && !on_device(at, bytes_of(type))) return 0;
        return get(at, type, 0);
    }

    // Loads a column-major matrix as contiguous doubles; returns null after an error. `reported`: report the read to
    // the checks, which is unnecessary if the same matrix is stored later.
    double* load(const Matrix& matrix, const char* base, long long rows, long long columns, bool reported = true) {
        if (!check(matrix, base, rows, columns)) return nullptr;
        auto* values = static_cast<double*>(malloc(static_cast<size_t>(rows * columns + 1) * sizeof(double)));
        if (!values) {
            fails(CUBLAS_STATUS_ALLOC_FAILED, "the host is out of memory");
            return nullptr;
        }
        bool turned = matrix.operation != CUBLAS_OP_N;
        long long lines = turned ? rows : columns, length = turned ? columns : rows;
        for (long long line = 0; line < lines; ++line) {
            size_t first = static_cast<size_t>(line * matrix.ld);
            size_t bytes = static_cast<size_t>(length) * bytes_of(matrix.type);
            if (reported) events::host_read(base + first * bytes_of(matrix.type), bytes);
            for (long long i = 0; i < length; ++i) {
                double value = get(base, matrix.type, first + static_cast<size_t>(i));
                values[turned ? i * rows + line : line * rows + i] = value;
            }
        }
        return values;
    }

    void store(const Matrix& matrix, char* base, long long rows, long long columns, const double* values) {
        bool turned = matrix.operation != CUBLAS_OP_N;
        long long lines = turned ? rows : columns, length = turned ? columns : rows;
        for (long long line = 0; line < lines; ++line) {
            size_t first = static_cast<size_t>(line * matrix.ld);
            for (long long i = 0; i < length; ++i)
                set(base, matrix.type, first + static_cast<size_t>(i),
                    values[turned ? i * rows + line : line * rows + i]);
            events::host_write(base + first * bytes_of(matrix.type),
                               static_cast<size_t>(length) * bytes_of(matrix.type));
        }
    }

    // Performs the operation in the handle's stream. `waits`: the host receives a result.
    template <typename F>
    cublasStatus_t run(F function, bool waits = false) {
        if (sandbox::confined) return CUBLAS_STATUS_NOT_SUPPORTED;  // kernel files of submissions may not use libraries
        if (!is_handle(handle_)) return CUBLAS_STATUS_NOT_INITIALIZED;
        CUstream_st* stream = streams::find(stream_);
        if (stream && stream->capture) {
            fails(CUBLAS_STATUS_NOT_SUPPORTED,
                  "the simulator does not support cuBLAS during stream capture: call it outside of the capture");
            return status_;
        }
        Operation operation = {OperationKind::host_function, name_, caller_};
        operation.function = [](void* data) { (*static_cast<F*>(data))(); };
        operation.data = &function;
        if (streams::submit(operation, stream_)) return CUBLAS_STATUS_EXECUTION_FAILED;
        if (waits && stream) streams::host_waited_for(stream->known);
        return status_;
    }

    cublasPointerMode_t mode() const { return mode_; }

  private:
    bool check(const Matrix& matrix, const char* base, long long rows, long long columns) {
        if (matrix.operation < CUBLAS_OP_N || matrix.operation > CUBLAS_OP_C) {
            fails(CUBLAS_STATUS_INVALID_VALUE, "the operation of a matrix is not CUBLAS_OP_N, _T or _C");
            return false;
        }
        bool turned = matrix.operation != CUBLAS_OP_N;
        long long lines = turned ? rows : columns, length = turned ? columns : rows;
        if (rows < 0 || columns < 0 || matrix.ld < (length > 1 ? length : 1) || !bytes_of(matrix.type)) {
            fails(CUBLAS_STATUS_INVALID_VALUE,
                  "a leading dimension is smaller than the number of rows, or a size is negative");
            return false;
        }
        if (!lines || !length) return true;
        size_t elements = static_cast<size_t>((lines - 1) * matrix.ld + length);
        return on_device(base, elements * bytes_of(matrix.type));
    }

    const char* name_;
    cublasHandle_t handle_;
    const void* caller_;
    cudaStream_t stream_ = nullptr;
    cublasPointerMode_t mode_ = CUBLAS_POINTER_MODE_HOST;
    cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

const char* place(const Matrix& matrix, int batch) {
    return static_cast<const char*>(matrix.data) +
           batch * matrix.stride * static_cast<long long>(bytes_of(matrix.type));
}

double rounded(Rounding rounding, double value) {
    switch (rounding) {
        case Rounding::none:
            return value;
        case Rounding::f16:
            return static_cast<double>(F16::decode(static_cast<uint16_t>(small_from_double<F16>(value))));
        case Rounding::bf16:
            return static_cast<double>(BF16::decode(static_cast<uint16_t>(small_from_double<BF16>(value))));
        case Rounding::tf32: {  // ten bits after the point
            if (value == 0 || !isfinite(value)) return value;
            int exponent;
            double fraction = frexp(value, &exponent);
            return ldexp(nearbyint(ldexp(fraction, 11)), exponent - 11);
        }
    }
    return value;
}

double activated(Activation activation, double value) {
    if (activation == Activation::relu) return value > 0 || value != value ? value : 0;
    if (activation == Activation::none) return value;
    return 0.5 * value *
           (1 + tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)));  // approximates GELU
}

// Returns whether cuBLAS has a kernel for these types, by the tables of cublasGemmEx and cublasLtMatmul in its manual.
bool has_kernel(const Product& p) {
    cudaDataType in = p.a.type, out = p.d.type;
    if (p.b.type != in || p.c.type != out) return false;
    if (p.rounding != Rounding::none) return in == CUDA_R_32F && out == CUDA_R_32F;
    if (p.scalars == CUDA_R_16F || p.scalars == CUDA_R_64F) return in == p.scalars && out == p.scalars;
    if (p.scalars == CUDA_R_32I) return in == CUDA_R_8I && out == CUDA_R_32I;
    if (p.scalars != CUDA_R_32F) return false;
    bool is_half = in == CUDA_R_16F || in == CUDA_R_16BF;
    return (out == CUDA_R_32F && (in == CUDA_R_32F || is_half || in == CUDA_R_8I)) || (in == out && is_half);
}

// Adds the bias to each column, and applies the activation.
void finish(Call& call, const Product& p, double* sums) {
    if (p.bias) {
        size_t bytes = static_cast<size_t>(p.m) * bytes_of(p.bias_type);
        if (!call.on_device(p.bias, bytes)) return;
        events::host_read(p.bias, bytes);
    }
    for (long long i = 0; i < p.m; ++i) {
        double bias = p.bias ? get(p.bias, p.bias_type, static_cast<size_t>(i)) : 0;
        for (long long j = 0; j < p.n; ++j) sums[j * p.m + i] = activated(p.activation, sums[j * p.m + i] + bias);
    }
}

void multiply_one(Call& call, const Product& p, double alpha, double beta, int batch) {
    double* left = call.load(p.a, place(p.a, batch), p.m, p.k);
    double* right = left ? call.load(p.b, place(p.b, batch), p.k, p.n) : nullptr;
    char* target = const_cast<char*>(place(p.d, batch));
    bool keeps = beta != 0 && p.c.data != p.d.data;
    double* sums = right ? call.load(p.d, target, p.m, p.n, false) : nullptr;
    double* old = sums && keeps ? call.load(p.c, place(p.c, batch), p.m, p.n) : sums;
    if (sums && old) {
        for (long long i = 0; p.rounding != Rounding::none && i < p.m * p.k; ++i)
            left[i] = rounded(p.rounding, left[i]);
        for (long long j = 0; j < p.n; ++j) {
            double* column = sums + j * p.m;
            for (long long i = 0; i < p.m; ++i) column[i] = beta == 0 ? 0 : beta * old[j * p.m + i];
            for (long long step = 0; step < p.k; ++step) {
                double factor = alpha * rounded(p.rounding, right[j * p.k + step]);
                const double* from = left + step * p.m;
                for (long long i = 0; i < p.m; ++i) column[i] += from[i] * factor;
            }
        }
        finish(call, p, sums);
        if (call.good()) call.store(p.d, target, p.m, p.n, sums);
    }
    if (keeps) free(old);
    free(left);
    free(right);
    free(sums);
}

cublasStatus_t perform(Call& call, const Product& p) {
    return call.run([&] {
        if (p.typed && !has_kernel(p))
            return call.fails(CUBLAS_STATUS_NOT_SUPPORTED, "cuBLAS does not combine these types of matrices and sums");
        double alpha = call.scalar(p.alpha, p.scalars, 1), beta = call.scalar(p.beta, p.scalars, 1);
        for (int batch = 0; batch < p.batches && call.good(); ++batch) multiply_one(call, p, alpha, beta, batch);
    });
}

}  // namespace

cublasStatus_t perform(const char* name, cublasHandle_t handle, const Product& product) {
    Call call(name, handle, CALLER);
    return perform(call, product);
}

cublasStatus_t perform_in(const char* name, cublasHandle_t handle, const Product& product, cudaStream_t stream,
                          cublasPointerMode_t mode) {
    Call call(name, handle, CALLER);
    call.use(stream, mode);
    return perform(call, product);
}

cublasStatus_t add(const char* name, cublasHandle_t handle, long long m, long long n, const void* alpha, Matrix a,
                   const void* beta, Matrix b, Matrix c, cudaDataType scalars) {
    Call call(name, handle, CALLER);
    return call.run([&] {
        double by_a = call.scalar(alpha, scalars, 1), by_b = call.scalar(beta, scalars, 1);
        double* first =
            by_a == 0 ? call.load(c, place(c, 0), m, n, false) : call.load(a, place(a, 0), m, n, a.data != c.data);
        double* second =
            by_b == 0 ? call.load(c, place(c, 0), m, n, false) : call.load(b, place(b, 0), m, n, b.data != c.data);
        double* old = first && second ? call.load(c, place(c, 0), m, n, false) : nullptr;
        for (long long i = 0; old && i < m * n; ++i)
            old[i] = (by_a == 0 ? 0 : by_a * first[i]) + (by_b == 0 ? 0 : by_b * second[i]);
        if (old) call.store(c, const_cast<char*>(place(c, 0)), m, n, old);
        free(first);
        free(second);
        free(old);
    });
}

cublasStatus_t vectors(const char* name, Vectors what, cublasHandle_t handle, long long n, const void* alpha,
                       const void* x, long long x_step, void* y, long long y_step, void* result, cudaDataType type) {
    Call call(name, handle, CALLER);
    bool on_host = result && is_handle(handle) && handle->mode == CUBLAS_POINTER_MODE_HOST;
    return call.run(
        [&] {
            if (n < 0) n = 0;
            Matrix of_x = {x, type, x_step, 0, CUBLAS_OP_N}, of_y = {y, type, y_step, 0, CUBLAS_OP_N};
            double by = call.scalar(alpha, type, 1), sum = 0, largest = -1;
            bool keeps_x = what != Vectors::scale && what != Vectors::swap;
            double* first = call.load(of_x, place(of_x, 0), 1, n, keeps_x);
            double* second = first && y ? call.load(of_y, place(of_y, 0), 1, n, what == Vectors::dot) : nullptr;
            char *to_x = const_cast<char*>(place(of_x, 0)), *to_y = static_cast<char*>(y);
            for (long long i = 0; first && i < n; ++i) {
                double value = first[i];
                if (what == Vectors::dot && second) sum += value * second[i];
                if (what == Vectors::norm) sum += value * value;
                if (what == Vectors::sum_of_sizes) sum += fabs(value);
                if (what == Vectors::largest && fabs(value) > largest) {
                    largest = fabs(value);
                    sum = static_cast<double>(i + 1);
                }
                if (what == Vectors::axpy && second) second[i] += by * value;
                if (what == Vectors::scale) first[i] = by * value;
            }
            if (what == Vectors::norm) sum = sqrt(sum);
            bool found = call.good() && first;
            if (found && (what == Vectors::copy || what == Vectors::swap || what == Vectors::scale))
                call.store(of_y, to_y, 1, n, first);
            if (found && what == Vectors::axpy) call.store(of_y, to_y, 1, n, second);
            if (found && what == Vectors::swap) call.store(of_x, to_x, 1, n, second);
            cudaDataType of_result = what == Vectors::largest ? CUDA_R_32I : type;
            if (found && result && (on_host || call.on_device(result, bytes_of(of_result)))) {
                set(result, of_result, 0, sum);
                if (!on_host) events::host_write(result, bytes_of(of_result));
            }
            free(first);
            free(second);
        },
        on_host);
}

}  // namespace sim::blas

using namespace sim::blas;

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
    if (sim::sandbox::confined) return CUBLAS_STATUS_NOT_SUPPORTED;
    sim::DeviceLock lock;
    for (cublasContext& one : handles) {
        if (one.used) continue;
        one = {true, nullptr, CUBLAS_POINTER_MODE_HOST};
        *handle = &one;
        return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->used = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *mode = handle->mode;
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
#define NAME(STATUS) \
    if (status == STATUS) return #STATUS;
    NAME(CUBLAS_STATUS_SUCCESS)
    NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    NAME(CUBLAS_STATUS_ALLOC_FAILED)
    NAME(CUBLAS_STATUS_INVALID_VALUE)
    NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    NAME(CUBLAS_STATUS_NOT_SUPPORTED)
    return "another status of cuBLAS";
}

const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

}  // extern "C"
