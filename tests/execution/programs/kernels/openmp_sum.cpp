// Host code of openmp.cu.
#include <vector>

int sum_of(const std::vector<int>& values) {
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < static_cast<int>(values.size()); ++i) sum += values[i];
    return sum;
}
