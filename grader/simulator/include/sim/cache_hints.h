// Loads and stores with cache hints: plain accesses here, because a hint changes no value.
#pragma once

#include "sim/device.h"

template <typename T>
inline __attribute__((always_inline)) T __ldg(const T* address) {
    ::sim::read_only_load(address, sizeof(T));
    return *address;
}

#define SIM_LOAD_WITH_HINT(name)                                     \
    template <typename T>                                            \
    inline __attribute__((always_inline)) T name(const T* address) { \
        return *address;                                             \
    }
SIM_LOAD_WITH_HINT(__ldca)
SIM_LOAD_WITH_HINT(__ldcg)
SIM_LOAD_WITH_HINT(__ldcs)
SIM_LOAD_WITH_HINT(__ldlu)
SIM_LOAD_WITH_HINT(__ldcv)
#undef SIM_LOAD_WITH_HINT

namespace sim {

template <typename T>
struct Same {
    using type = T;
};

}  // namespace sim

// The value converts to the pointer's element type, as in CUDA's overloads.
#define SIM_STORE_WITH_HINT(name)                                                                             \
    template <typename T>                                                                                     \
    inline __attribute__((always_inline)) void name(T* address, const typename ::sim::Same<T>::type& value) { \
        *address = value;                                                                                     \
    }
SIM_STORE_WITH_HINT(__stwb)
SIM_STORE_WITH_HINT(__stcg)
SIM_STORE_WITH_HINT(__stcs)
SIM_STORE_WITH_HINT(__stwt)
#undef SIM_STORE_WITH_HINT
