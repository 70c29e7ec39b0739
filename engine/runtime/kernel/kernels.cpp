#include "product.h"

namespace lacuna {

const Kernel *const *kernels(int &count) {
    static const struct Found {
        const Kernel *kernels[3];
        int count = 0;

        Found() : kernels{} {
            __builtin_cpu_init();
            if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
            if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl")) {
                kernels[count++] = &avx512_vnni_kernel;
            }
            if (has_avx_vnni()) kernels[count++] = &avx_vnni_kernel;
            kernels[count++] = &avx2_kernel;
        }

        // Leaf 7, subleaf 1, bit 4 of EAX; not every compiler's __builtin_cpu_supports knows the name. The system
        // saves 256-bit registers, or AVX2 would not have been reported.
        static bool has_avx_vnni() {
            unsigned a = 7, b = 0, c = 1, d = 0;
            __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
            return (a & (1u << 4)) != 0 && highest_subleaf() >= 1;
        }

        static unsigned highest_subleaf() {
            unsigned a = 7, b = 0, c = 0, d = 0;
            __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
            return a;
        }
    } found;
    count = found.count;
    return found.kernels;
}

}  // namespace lacuna
