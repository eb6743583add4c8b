// What each program for the simulated GPU has beside its own code: before its first line libsim learns that it starts.
extern "C" void sim_program_starts(const char* const* reporter, const void* base);
extern "C" const char __executable_start[];

static const char* const reporter[] = {REPORTER, nullptr};

__attribute__((constructor(101))) static void start() {
    sim_program_starts(reporter[0] ? reporter : nullptr, __executable_start);
}
