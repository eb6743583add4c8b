// Has the compiler print what terminals and spreadsheets obey, as an error and as the line that it is on.
#error =1+1 [2J  ‮ ＝1+1 31m  
static_assert(false, "]0;title ​‮");
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { [31m ‮ int ­;
}
