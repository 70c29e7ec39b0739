// The Python module `engine.runtime._int8`: numbers and addresses in, numbers out. What owns the memory behind the
// addresses, and that it is large enough, is the caller's affair: engine/runtime/packed.py and
// engine/models/packed_network.py.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <new>

#include "forward.h"
#include "softmax.h"
#include "threads.h"

namespace {

using namespace lacuna;

// Raised by one whenever a function's arguments or the layout of the weights change.
constexpr long kInterface = 3;

thread_local Workspace workspace;

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

// Reads a call's arguments in their order; any error is Python's.
class Arguments {
   public:
    explicit Arguments(PyObject *const *first) : next_(first) {}

    template <typename T>
    T *address() {
        return static_cast<T *>(PyLong_AsVoidPtr(*next_++));
    }
    std::size_t size() { return PyLong_AsSize_t(*next_++); }
    int threads() { return static_cast<int>(PyLong_AsLong(*next_++)); }
    float number() { return static_cast<float>(PyFloat_AsDouble(*next_++)); }
    const Kernel *kernel() { return kernel_at(*next_++); }

   private:
    PyObject *const *next_;
};

// Runs `work` while other Python threads run. None, or the error it threw.
template <typename Work>
PyObject *without_the_lock(const Work &work) {
    bool out_of_memory = false;
    Py_BEGIN_ALLOW_THREADS
    try {
        work();
    } catch (const std::bad_alloc &) {
        out_of_memory = true;
    }
    Py_END_ALLOW_THREADS
    if (out_of_memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyObject *linear(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != 11) {
        PyErr_SetString(PyExc_TypeError, "linear takes 11 arguments");
        return nullptr;
    }
    Arguments arguments(given);
    const Kernel *kernel = arguments.kernel();
    const float *x = arguments.address<float>();
    const std::size_t rows = arguments.size();
    Matrix matrix;
    matrix.weights = arguments.address<std::int8_t>();
    matrix.correction = arguments.address<std::int32_t>();
    matrix.scale = arguments.address<float>();
    matrix.bias = arguments.address<float>();
    matrix.inputs = arguments.size();
    matrix.outputs = arguments.size();
    float *y = arguments.address<float>();
    const int threads = arguments.threads();
    if (PyErr_Occurred()) return nullptr;
    return without_the_lock([&] { multiply(*kernel, matrix, x, rows, threads, workspace, y); });
}

PyObject *layers(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != 22) {
        PyErr_SetString(PyExc_TypeError, "layers takes 22 arguments");
        return nullptr;
    }
    static_assert(sizeof(Layer) == 74 * sizeof(std::int64_t), "a layer is a row of the caller's table of 74 numbers");
    Arguments arguments(given);
    const Kernel *kernel = arguments.kernel();
    const Layer *table = arguments.address<Layer>();
    const std::size_t depth = arguments.size();
    const float *final_norm = arguments.address<float>();
    Shape shape;
    shape.hidden = arguments.size();
    shape.heads = arguments.size();
    shape.kv_heads = arguments.size();
    shape.head_dim = arguments.size();
    shape.intermediate = arguments.size();
    shape.epsilon = arguments.number();
    Cache cache;
    cache.store = arguments.address<float>();
    cache.capacity = arguments.size();
    cache.length = arguments.size();
    const float *embedded = arguments.address<float>();
    Rows rows;
    rows.count = arguments.size();
    rows.cosine = arguments.address<float>();
    rows.sine = arguments.address<float>();
    rows.bias = arguments.address<float>();
    rows.positions = arguments.size();
    const std::size_t wanted = arguments.size();
    float *y = arguments.address<float>();
    const int threads = arguments.threads();
    if (PyErr_Occurred()) return nullptr;
    return without_the_lock([&] {
        run_layers(*kernel, shape, table, depth, final_norm, cache, rows, embedded, wanted, threads, workspace, y);
    });
}

// Calls work(row) for every row, on up to `threads` threads.
template <typename Work>
PyObject *for_rows(std::size_t rows, int threads, const Work &work) {
    const auto call = [](const void *given, std::uint32_t row, int) { (*static_cast<const Work *>(given))(row); };
    return without_the_lock([&] { parallel_chunks(threads, static_cast<std::uint32_t>(rows), call, &work); });
}

PyObject *softmax_rows(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != 9) {
        PyErr_SetString(PyExc_TypeError, "softmax takes 9 arguments");
        return nullptr;
    }
    Arguments arguments(given);
    arguments.kernel();
    const float *logits = arguments.address<float>();
    const std::size_t rows = arguments.size();
    const std::size_t width = arguments.size();
    float *probs = arguments.address<float>();
    std::int64_t *likeliest = arguments.address<std::int64_t>();
    float *best = arguments.address<float>();
    float *entropy = arguments.address<float>();
    const int threads = arguments.threads();
    if (PyErr_Occurred()) return nullptr;
    return for_rows(rows, threads, [=](std::size_t row) {
        const Peak peak = softmax(logits + row * width, width, probs + row * width);
        likeliest[row] = peak.likeliest;
        best[row] = peak.best;
        entropy[row] = peak.entropy;
    });
}

PyObject *drawn_rows(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != 9) {
        PyErr_SetString(PyExc_TypeError, "drawn takes 9 arguments");
        return nullptr;
    }
    Arguments arguments(given);
    arguments.kernel();
    const float *probs = arguments.address<float>();
    const std::size_t rows = arguments.size();
    const std::size_t width = arguments.size();
    const float *dice = arguments.address<float>();
    const std::size_t tries = arguments.size();
    const float top_p = arguments.number();
    std::int64_t *places = arguments.address<std::int64_t>();
    const int threads = arguments.threads();
    if (PyErr_Occurred()) return nullptr;
    return for_rows(rows, threads, [=](std::size_t row) {
        places[row] = drawn(probs + row * width, width, dice + row * tries, tries, top_p);
    });
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
    {"layers", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(layers)), METH_FASTCALL,
     "layers(kernel, table, depth, final_norm, hidden, heads, kv_heads, head_dim, intermediate, epsilon, store, "
     "capacity, length, embedded, rows, cosine, sine, bias, positions, wanted, y, threads)\n\n"
     "All layers of a pass; see `run_layers` in kernel/forward.h. table holds 74 numbers a layer: two norms, then\n"
     "qkv, output, gate_up and down, each with the two factors of its patch or zeros; a matrix is its weights,\n"
     "correction, scale, bias, inputs and outputs. Errors as of linear."},
    {"softmax", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(softmax_rows)), METH_FASTCALL,
     "softmax(kernel, logits, rows, width, probs, likeliest, best, entropy, threads)\n\n"
     "Of each row; see kernel/softmax.h. All but the sizes are addresses: [rows, width] float32 twice, [rows] int64,\n"
     "and [rows] float32 twice. Errors as of linear."},
    {"drawn", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(drawn_rows)), METH_FASTCALL,
     "drawn(kernel, probs, rows, width, dice, tries, top_p, places, threads)\n\n"
     "Of each row of [rows, width] a place, an int64, by [rows, tries] dice; see kernel/softmax.h. Errors as of linear."},
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
