// Every template instantiates two more, so the number of instantiations grows exponentially without end.
template <int N, long P>
struct Wide {
    static constexpr long value = Wide<N - 1, 2 * P>::value + Wide<N - 1, 2 * P + 1>::value;
};
template <long P>
struct Wide<0, P> {
    static constexpr long value = P;
};
long wide = Wide<40, 1>::value;
