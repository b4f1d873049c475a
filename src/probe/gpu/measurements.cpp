#include "probe/gpu/measurements.h"
#include "probe/question.h"

namespace nlaunch::probe {
namespace {

const Registered<Question> copies_question{{
    .order = 160,
    .name = "copies",
    .arguments = "[--devices LIST]",
    .what = "how fast bytes move between the GPUs and the host, and whether they arrive",
    .answer = measure_copies,
}};

const Registered<Question> gemm_question{{
    .order = 170,
    .name = "gemm",
    .arguments = "[--devices LIST] [--seconds S]",
    .what = "bf16 matrix products on all GPUs at once, compared bit by bit",
    .answer = measure_gemm,
}};

}  // namespace
}  // namespace nlaunch::probe
