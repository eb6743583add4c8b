// Exhausts the compiler's memory.
struct Large {
    char bytes[1 << 30];
};
constexpr Large make(int k) {
    Large large{};
    for (int i = 0; i < (1 << 30); ++i) large.bytes[i] = char(i + k);
    return large;
}
constexpr Large one = make(1), two = make(2);
