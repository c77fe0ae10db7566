// Captures the work of a step on one stream into CUDA graphs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_timeline.cuh"
#include "kernels/dense_ops.h"

namespace hdps {

// Each step is captured anew, since its sizes and addresses change. The capture then updates the
// executable graph of an earlier step with the same nodes, which costs less than launching each
// kernel. A graph is instantiated only if no earlier step had these nodes.
//
// Invariant: what is put on the stream takes effect in the order of the calls, captured or not.
// Nothing is captured while memory is allocated or freed, while the host waits, or while streams
// wait for each other. If memory grows within a graph, the rest of the step is not captured,
// because its pieces would make graphs that never come again; nor is the first step, in which the
// libraries load their kernels.
class CudaCapture {
 public:
  // `timeline`, which may be null, is told where computing begins; a graph begins with its launch.
  explicit CudaCapture(cudaStream_t stream, CudaTimeline* timeline = nullptr)
      : stream_(stream), timeline_(timeline) {}
  ~CudaCapture();
  CudaCapture(const CudaCapture&) = delete;
  CudaCapture& operator=(const CudaCapture&) = delete;

  void BeginStep();
  void EndStep();
  // Called before work that computes; captures it if the step allows that.
  void Begin();
  // Called before a call that waits or is waited for: launches what was captured. Throws
  // DeviceMemoryFull.
  void Launch();
  // Called before memory is allocated or freed: likewise, and ends the capture for this step.
  void Pause();
  // Records `event` after all work so far.
  void Record(cudaEvent_t event);

  const DeviceGraphs& counts() const { return counts_; }

 private:
  // The kinds of a graph's nodes in order, one letter each.
  using Kinds = std::string;

  void StartCapture();
  void TellOfCompute();
  cudaGraphExec_t Remembered(cudaGraph_t graph);
  void Forget();

  const cudaStream_t stream_;
  CudaTimeline* const timeline_;
  bool in_step_ = false, paused_ = false, refused_ = false, capturing_ = false;
  std::vector<cudaEvent_t> events_;  // Recorded when the graph has been launched.
  std::map<Kinds, cudaGraphExec_t> remembered_;
  uint64_t steps_ = 0;
  DeviceGraphs counts_;
};

}  // namespace hdps
