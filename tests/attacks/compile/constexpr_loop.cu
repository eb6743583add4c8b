// Loops forever in a constexpr function during compilation.
constexpr long spin() {
    long sum = 0;
    for (long i = 0; i < (1L << 60); ++i) sum += i;
    return sum;
}
constexpr long spun = spin();
