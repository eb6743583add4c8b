// Nests template instantiations without end.
template <int N>
struct Deep {
    static constexpr long value = Deep<N + 1>::value + 1;
};
long deep = Deep<0>::value;
