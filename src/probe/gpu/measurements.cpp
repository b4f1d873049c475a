#include "probe/gpu/measurements.h"
#include "probe/question.h"

namespace nlaunch::probe {
namespace {

const Registered<Question> copies_question{{
    .order = 160,
    .name = "copies",
    .arguments = "[--devices LIST]",
    .what = "copy bandwidth between the GPUs and the host, and whether the data arrives intact",
    .answer = measure_copies,
}};

const Registered<Question> gemm_question{{
    .order = 170,
    .name = "gemm",
    .arguments = "[--devices LIST] [--seconds S]",
    .what = "bf16 matrix products on all GPUs at the same time, compared bit by bit",
    .answer = measure_gemm,
}};

}  // namespace
}  // namespace nlaunch::probe
