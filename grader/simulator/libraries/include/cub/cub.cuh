// The simulated parts of CUB: warp and block collectives.
#pragma once

#include "cub/block/block_reduce.cuh"
#include "cub/block/block_scan.cuh"
#include "cub/warp/warp_reduce.cuh"
#include "cub/warp/warp_scan.cuh"
