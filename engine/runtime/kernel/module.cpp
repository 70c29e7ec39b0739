// The Python module `engine.runtime._int8`: numbers and addresses in, numbers out. What owns the memory behind the
// addresses, and that it is large enough, is the caller's affair: engine/runtime/packed.py.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <xmmintrin.h>

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "product.h"
#include "threads.h"

namespace {

using namespace lacuna;

// Raised by one whenever a function's arguments or the layout of the weights change.
constexpr long kInterface = 1;

// A thread's room for quantised rows, kept between calls.
struct Workspace {
    std::vector<std::uint8_t> values;
    std::vector<float> factors;

    Tiles tiles(std::size_t rows, std::size_t steps) {
        if (values.size() < rows * steps * kInputs) values.resize(rows * steps * kInputs);
        if (factors.size() < rows) factors.resize(rows);
        return {values.data(), factors.data(), rows};
    }
};

struct Work {
    const Kernel *kernel;
    Matrix matrix;
    Tiles tiles;
    const float *x;
    float *y;
    std::size_t groups_per_chunk;
    unsigned float_mode;  // a thread's rounding and flushing, which would else depend on who takes a chunk
};

void quantise_chunk(const void *shared, std::uint32_t chunk) {
    const Work &work = *static_cast<const Work *>(shared);
    const unsigned own_mode = _mm_getcsr();
    _mm_setcsr(work.float_mode);
    work.kernel->quantise(work.x, work.matrix.inputs, work.matrix.inputs, work.tiles, chunk);
    _mm_setcsr(own_mode);
}

void product_chunk(const void *shared, std::uint32_t chunk) {
    const Work &work = *static_cast<const Work *>(shared);
    const unsigned own_mode = _mm_getcsr();
    _mm_setcsr(work.float_mode);
    const std::size_t first = chunk * work.groups_per_chunk, end = first + work.groups_per_chunk;
    const std::size_t groups = work.matrix.groups();
    work.kernel->product(work.matrix, work.tiles, first, end < groups ? end : groups, work.y);
    _mm_setcsr(own_mode);
}

constexpr std::size_t kChunksPerThread = 8;
constexpr std::size_t kSharedQuantising = 16384;  // values below which waking another thread costs more

void multiply(Work &work, int threads) {
    const std::size_t values = work.tiles.rows * work.matrix.inputs;
    const auto tiles = static_cast<std::uint32_t>(work.tiles.count());
    parallel_chunks(values < kSharedQuantising ? 1 : threads, tiles, quantise_chunk, &work);
    const std::size_t groups = work.matrix.groups();
    const std::size_t wanted = threads > 1 ? threads * kChunksPerThread : 1;
    work.groups_per_chunk = (groups + wanted - 1) / wanted;
    const auto chunks = static_cast<std::uint32_t>((groups + work.groups_per_chunk - 1) / work.groups_per_chunk);
    parallel_chunks(threads, chunks, product_chunk, &work);
}

template <typename T>
T *address(PyObject *number) {
    return static_cast<T *>(PyLong_AsVoidPtr(number));
}

const Kernel *kernel_at(PyObject *number) {
    int count = 0;
    const Kernel *const *found = kernels(count);
    const long index = PyLong_AsLong(number);
    if (PyErr_Occurred()) return nullptr;
    if (index < 0 || index >= count) {
        PyErr_SetString(PyExc_ValueError, "this processor has no kernel of that number");
        return nullptr;
    }
    return found[index];
}

PyObject *linear(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 11) {
        PyErr_SetString(PyExc_TypeError, "linear takes 11 arguments");
        return nullptr;
    }
    thread_local Workspace workspace;
    Work work{};
    work.kernel = kernel_at(arguments[0]);
    work.x = address<float>(arguments[1]);
    const std::size_t rows = PyLong_AsSize_t(arguments[2]);
    work.matrix.weights = address<std::int8_t>(arguments[3]);
    work.matrix.correction = address<std::int32_t>(arguments[4]);
    work.matrix.scale = address<float>(arguments[5]);
    work.matrix.bias = address<float>(arguments[6]);
    work.matrix.inputs = PyLong_AsSize_t(arguments[7]);
    work.matrix.outputs = PyLong_AsSize_t(arguments[8]);
    work.y = address<float>(arguments[9]);
    const long threads = PyLong_AsLong(arguments[10]);
    if (PyErr_Occurred()) return nullptr;
    try {
        work.tiles = workspace.tiles(rows, work.matrix.steps());
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    work.float_mode = _mm_getcsr();
    Py_BEGIN_ALLOW_THREADS
    if (rows != 0 && work.matrix.outputs != 0) multiply(work, static_cast<int>(threads));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *kernel_names(PyObject *, PyObject *) {
    int count = 0;
    const Kernel *const *found = kernels(count);
    PyObject *names = PyTuple_New(count);
    for (int index = 0; names != nullptr && index < count; ++index) {
        PyObject *name = PyUnicode_FromString(found[index]->name);
        if (name == nullptr || PyTuple_SetItem(names, index, name) != 0) {
            Py_DECREF(names);
            return nullptr;
        }
    }
    return names;
}

PyMethodDef methods[] = {
    {"linear", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(linear)), METH_FASTCALL,
     "linear(kernel, x, rows, weights, correction, scale, bias, inputs, outputs, y, threads)\n\n"
     "y = x W^T + bias over int8 weights; x, weights, correction, scale, bias (0 for none) and y are addresses.\n"
     "Other Python threads run meanwhile. Raises ValueError for a kernel this processor lacks, MemoryError."},
    {"kernels", kernel_names, METH_NOARGS,
     "kernels()\n\nThe names of the kernels this processor can run, the fastest first; empty without AVX2."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_int8", "int8 products of a few rows: see engine/runtime/packed.py.", -1, methods,
    nullptr,               nullptr, nullptr,                                                        nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__int8() {
    PyObject *module = PyModule_Create(&definition);
    if (module != nullptr && PyModule_AddIntConstant(module, "INTERFACE", kInterface) != 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
