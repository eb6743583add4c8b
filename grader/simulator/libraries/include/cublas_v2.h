// The present API of cuBLAS.
#pragma once
#define CUBLAS_V2_H_

#ifdef CUBLAS_H_
#error "cublas.h and cublas_v2.h cannot be included together"
#endif
#include "cublas_api.h"
