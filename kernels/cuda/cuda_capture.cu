// Captures a stream, finds a graph with the same nodes or builds one, and launches it.
#include "kernels/cuda/cuda_capture.cuh"

#include <utility>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"

namespace hdps {
namespace {

// Limits the remembered graphs, because each takes device memory.
constexpr size_t kRememberedMax = 64;

std::string KindsOf(cudaGraph_t graph) {
  size_t count = 0;
  HDPS_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) HDPS_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  std::string kinds;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    HDPS_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
    kinds += static_cast<char>('a' + static_cast<int>(type));
  }
  return kinds;
}

// Owns a captured graph until it has been launched.
class CapturedGraph {
 public:
  explicit CapturedGraph(cudaStream_t stream) {
    HDPS_CUDA_CHECK(cudaStreamEndCapture(stream, &graph_));
  }
  ~CapturedGraph() { cudaGraphDestroy(graph_); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  operator cudaGraph_t() const { return graph_; }

 private:
  cudaGraph_t graph_ = nullptr;
};

void CheckMemory(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // Clears the error for later calls.
    throw DeviceMemoryFull(std::string("the GPU's memory is full: a step's graph has no room") +
                           kNeedLessDeviceMemory);
  }
  HDPS_CUDA_CHECK(error);
}

}  // namespace

CudaCapture::~CudaCapture() {
  if (std::exchange(capturing_, false)) const CapturedGraph dropped(stream_);
  Forget();
}

void CudaCapture::BeginStep() {
  in_step_ = true;
  paused_ = steps_++ == 0;
}

void CudaCapture::EndStep() {
  in_step_ = false;
  Launch();
}

void CudaCapture::Begin() {
  if (capturing_) return;
  if (in_step_ && !paused_ && !refused_) StartCapture();
  if (!capturing_) TellOfCompute();
}

void CudaCapture::TellOfCompute() {
  if (timeline_ != nullptr) timeline_->Begin(DeviceSpan::Kind::kCompute, stream_);
}

void CudaCapture::StartCapture() {
  // Other threads are not affected: they have streams of their own.
  const cudaError_t error = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
  refused_ = error != cudaSuccess;
  capturing_ = !refused_;
  if (capturing_) return;
  cudaGetLastError();  // Clears the error.
  LOG_FIRST_N(WARNING, 1) << "the driver captures no graphs (" << cudaGetErrorString(error)
                          << "); each kernel is started by itself";
}

void CudaCapture::Launch() {
  if (!std::exchange(capturing_, false)) return;
  {
    const CapturedGraph graph(stream_);
    if (cudaGraphExec_t const whole = Remembered(graph); whole != nullptr) {
      TellOfCompute();
      CheckMemory(cudaGraphLaunch(whole, stream_));
      ++counts_.launched;
    }
  }
  for (const cudaEvent_t event : std::exchange(events_, {})) Record(event);
}

void CudaCapture::Pause() {
  paused_ |= capturing_;
  Launch();
}

void CudaCapture::Record(cudaEvent_t event) {
  if (capturing_) {
    events_.push_back(event);
  } else {
    HDPS_CUDA_CHECK(cudaEventRecord(event, stream_));
  }
}

// Returns null for an empty graph.
cudaGraphExec_t CudaCapture::Remembered(cudaGraph_t graph) {
  const Kinds kinds = KindsOf(graph);
  if (kinds.empty()) return nullptr;
  if (remembered_.size() == kRememberedMax && !remembered_.contains(kinds)) Forget();
  cudaGraphExec_t& whole = remembered_[kinds];
  if (whole != nullptr) {
    cudaGraphExecUpdateResultInfo difference;
    if (cudaGraphExecUpdate(whole, graph, &difference) == cudaSuccess) {
      ++counts_.updated;
      return whole;
    }
    cudaGetLastError();  // Other order of nodes, or kernels that cannot replace each other.
    HDPS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    HDPS_CUDA_CHECK(cudaGraphExecDestroy(std::exchange(whole, nullptr)));
  }
  CheckMemory(cudaGraphInstantiate(&whole, graph, 0));
  ++counts_.built;
  return whole;
}

void CudaCapture::Forget() {
  if (remembered_.empty()) return;
  cudaStreamSynchronize(stream_);  // The remembered graphs may be running.
  for (const auto& [kinds, whole] : remembered_) {
    if (whole != nullptr) cudaGraphExecDestroy(whole);
  }
  remembered_.clear();
}

}  // namespace hdps
