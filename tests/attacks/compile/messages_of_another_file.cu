// Makes the compiler show lines of the solution in its messages.
#line 1 "@OTHER@"
int wrong = ;
