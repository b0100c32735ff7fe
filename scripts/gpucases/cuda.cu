//: needs = nvcc
//: marker = cuda.
//: class = fatal
//: [cuda_illegal]
//: args = illegal
//: root = illegal memory access
//: [cuda_misaligned]
//: args = misaligned
//: root = misaligned address
//: [cuda_trap]
//: args = trap
//: root = unspecified launch failure|illegal instruction
//: [cuda_assert]
//: args = assert
//: root = block: \[0,0,0\], thread: \[0,0,0\]
//: [cuda_uncaught]
//: args = illegal throw
//: root = what\(\):|illegal memory access
//: child = SIGABRT
//: child.pytest = 1
//: child.pytest-s = 1
//: child.xdist = 1
//: [cuda_bad_launch]
//: args = badlaunch
//: class = recoverable
//: marker =
//: root = invalid (argument|configuration)
#include <cassert>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

__global__ void illegal(int *p) { p[1LL << 40] = 1; }
__global__ void misaligned(char *p) { *reinterpret_cast<int *>(p + 1) = 1; }
__global__ void trap() { __trap(); }
__global__ void wrong(int n) { assert(n > 1 && "n is a count"); }

int main(int argc, char **argv) {
    char *p = nullptr;
    cudaError_t e = cudaMalloc(&p, 256);
    const char *what = argc > 1 ? argv[1] : "";
    if (!e && !strcmp(what, "illegal")) illegal<<<1, 1>>>(reinterpret_cast<int *>(p));
    if (!e && !strcmp(what, "misaligned")) misaligned<<<1, 1>>>(p);
    if (!e && !strcmp(what, "trap")) trap<<<1, 1>>>();
    if (!e && !strcmp(what, "assert")) wrong<<<1, 1>>>(1);
    if (!e && !strcmp(what, "badlaunch")) trap<<<1, 4096>>>();
    if (!e) e = cudaGetLastError();
    if (!e) e = cudaDeviceSynchronize();
    if (e && argc > 2) throw std::runtime_error(std::string("CUDA error: ") + cudaGetErrorString(e));
    if (e) fprintf(stderr, "CUDA error: %s (%s)\n", cudaGetErrorString(e), cudaGetErrorName(e));
    return e != cudaSuccess;
}
