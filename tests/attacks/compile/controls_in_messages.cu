// Makes the compiler print terminal escapes and spreadsheet formulas in an error and its quoted source line.
#error =1+1 [2J  ‮ ＝1+1 31m  
static_assert(false, "]0;title ​‮");
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { [31m ‮ int ­;
}
