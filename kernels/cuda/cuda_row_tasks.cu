// Row tasks on the device: a thread an element, or a thread a row.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"
#include "kernels/tasks/task_bodies.h"

namespace hdps {
namespace {

template <typename Task>
constexpr bool kTakesElements = requires(const Task& task) {
  task(size_t{0}, size_t{0});
};

template <typename Task>
__global__ void RunTask(Task task, size_t rows, size_t cols) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if constexpr (kTakesElements<Task>) {
    if (i < rows * cols) task(i / cols, i % cols);
  } else {
    if (i < rows) task(i);
  }
}

template <typename Task>
void Launch(cudaStream_t stream, const Task& task) {
  const Matrix over = task.Over();
  const size_t threads = kTakesElements<Task> ? over.rows * over.cols : over.rows;
  if (threads == 0) return;
  StartKernel(RunTask<Task>, BlocksFor(threads), kThreadsABlock, stream, task, over.rows,
              over.cols);
}

}  // namespace

void CudaRunRows(cudaStream_t stream, const RowTask& task) {
  std::visit([stream](const auto& each) { Launch(stream, each); }, task);
}

}  // namespace hdps
