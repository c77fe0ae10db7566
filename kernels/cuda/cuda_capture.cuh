// The work of a step on one stream, handed to the device as graphs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_timeline.cuh"
#include "kernels/dense_ops.h"

namespace hdps {

// A step is captured anew each time, since its sizes and addresses change, and laid over the
// executable graph of the last one with the same nodes, which costs less than starting each of its
// kernels. Another is built only where no step before had these nodes.
//
// Invariant: what is put on the stream takes effect in the order of the calls, captured or not.
// Nothing is captured while memory is taken or given back, while the host waits, or while streams
// wait for each other. Where memory grows in the midst of a graph, the rest of the step is not
// captured, which would build graphs of pieces that never come again; nor is the first step, in
// which the libraries load their kernels.
class CudaCapture {
 public:
  // `timeline`, which may be null, is told where computing begins: that of a graph, with its
  // launch.
  explicit CudaCapture(cudaStream_t stream, CudaTimeline* timeline = nullptr)
      : stream_(stream), timeline_(timeline) {}
  ~CudaCapture();
  CudaCapture(const CudaCapture&) = delete;
  CudaCapture& operator=(const CudaCapture&) = delete;

  void BeginStep();
  void EndStep();
  // Before what computes. Captures it where a step allows.
  void Begin();
  // Before a call that waits or is waited for: what was captured goes to the device. Throws
  // DeviceMemoryFull.
  void Launch();
  // Before memory is taken or given back: likewise; what was being captured is not gone on with.
  void Pause();
  // Behind all that computes so far.
  void Record(cudaEvent_t event);

  const DeviceGraphs& counts() const { return counts_; }

 private:
  // What kinds of nodes a graph has, in their order: a letter each.
  using Kinds = std::string;

  void StartCapture();
  void TellOfCompute();
  cudaGraphExec_t Remembered(cudaGraph_t graph);
  void Forget();

  const cudaStream_t stream_;
  CudaTimeline* const timeline_;
  bool in_step_ = false, paused_ = false, refused_ = false, capturing_ = false;
  std::vector<cudaEvent_t> events_;  // To be recorded when the graph has been launched.
  std::map<Kinds, cudaGraphExec_t> remembered_;
  uint64_t steps_ = 0;
  DeviceGraphs counts_;
};

}  // namespace hdps
