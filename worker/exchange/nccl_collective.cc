// A collective between GPUs: NCCL moves the segments, a kernel adds them in the order of the ranks.
// NCCL's own allreduce adds in an order that depends on its topology.
#include "worker/exchange/collective.h"

#ifdef HDPS_WITH_NCCL
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "worker/exchange/rank_sum.h"
#endif

namespace hdps {

#ifdef HDPS_WITH_NCCL
namespace {

// The calls of libnccl that are needed, found at run time.
struct NcclLibrary {
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) comm_init_rank = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
};

template <typename Function>
bool Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// The library stays loaded: NCCL keeps threads of its own.
Status LoadNccl(NcclLibrary* nccl) {
  void* handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Status(Code::kInvalidArgument, std::string("NCCL cannot be loaded: ") + dlerror());
  }
  const bool whole =
      Find(handle, "ncclGetUniqueId", &nccl->get_unique_id) &&
      Find(handle, "ncclCommInitRank", &nccl->comm_init_rank) &&
      Find(handle, "ncclCommDestroy", &nccl->comm_destroy) &&
      Find(handle, "ncclCommAbort", &nccl->comm_abort) &&
      Find(handle, "ncclGroupStart", &nccl->group_start) &&
      Find(handle, "ncclGroupEnd", &nccl->group_end) && Find(handle, "ncclSend", &nccl->send) &&
      Find(handle, "ncclRecv", &nccl->recv) && Find(handle, "ncclAllGather", &nccl->all_gather) &&
      Find(handle, "ncclGetErrorString", &nccl->error_string);
  if (!whole) {
    return Status(
        Code::kInvalidArgument,
        "libnccl.so.2 lacks ncclSend or others of its calls; NCCL 2.7 or newer is needed");
  }
  return Status();
}

Status CudaStatus(int error, const char* what) {
  if (error == cudaSuccess) return Status();
  return Status(Code::kUnavailable,
                std::string(what) + ": " + cudaGetErrorString(static_cast<cudaError_t>(error)));
}

class NcclCollective : public Collective {
 public:
  NcclCollective(const CollectiveOptions& options, const NcclLibrary& nccl, uint32_t gpu)
      : options_(options), nccl_(nccl), gpu_(static_cast<int>(gpu)) {}

  ~NcclCollective() override {
    cudaSetDevice(gpu_);
    if (comm_ != nullptr && !aborted_) nccl_.comm_destroy(comm_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudaFree(values_);
    cudaFree(parts_);
  }

  Status Connect(const ncclUniqueId& id) {
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaStreamCreate(&stream_), "cudaStreamCreate"));
    return NcclStatus(
        nccl_.comm_init_rank(&comm_, static_cast<int>(size()), id, static_cast<int>(rank())),
        "ncclCommInitRank");
  }

  uint32_t rank() const override { return options_.rank; }
  uint32_t size() const override { return options_.size; }
  const char* name() const override { return "nccl"; }

  Status AllReduceSum(std::span<float> data) override {
    if (aborted_) return Cancelled();
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    // Every rank adds up `segment` values; the last one's are filled up with what is not read.
    const size_t segment = (data.size() + size() - 1) / size();
    HDPS_RETURN_IF_ERROR(Reserve(segment * size()));
    const size_t bytes = data.size() * sizeof(float);
    HDPS_RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(values_, data.data(), bytes, cudaMemcpyHostToDevice, stream_), "copy in"));
    HDPS_RETURN_IF_ERROR(Exchange(segment));
    float* const own = values_ + segment * rank();
    HDPS_RETURN_IF_ERROR(
        CudaStatus(LaunchRankSum(parts_, size(), segment, own, stream_), "rank sum"));
    HDPS_RETURN_IF_ERROR(NcclStatus(
        nccl_.all_gather(own, values_, segment, ncclFloat, comm_, stream_), "ncclAllGather"));
    HDPS_RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(data.data(), values_, bytes, cudaMemcpyDeviceToHost, stream_), "copy out"));
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"));
    return aborted_ ? Cancelled() : Status();
  }

  Status Barrier() override {
    float one = 1;
    return AllReduceSum({&one, 1});
  }

  void Abort() override {
    if (!aborted_.exchange(true)) nccl_.comm_abort(comm_);
  }

 private:
  // parts_[r] = rank r's values of my segment.
  Status Exchange(size_t segment) {
    HDPS_RETURN_IF_ERROR(NcclStatus(nccl_.group_start(), "ncclGroupStart"));
    Status status;
    for (uint32_t r = 0; status.ok() && r < size(); ++r) {
      status = NcclStatus(nccl_.send(values_ + segment * r, segment, ncclFloat, static_cast<int>(r),
                                     comm_, stream_),
                          "ncclSend");
      if (!status.ok()) break;
      status = NcclStatus(
          nccl_.recv(parts_ + segment * r, segment, ncclFloat, static_cast<int>(r), comm_, stream_),
          "ncclRecv");
    }
    const Status ended = NcclStatus(nccl_.group_end(), "ncclGroupEnd");
    return status.ok() ? ended : status;
  }

  Status Reserve(size_t floats) {
    if (floats <= reserved_) return Status();
    cudaFree(values_);
    cudaFree(parts_);
    values_ = parts_ = nullptr;
    reserved_ = 0;
    const size_t bytes = floats * sizeof(float);
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&values_, bytes), "cudaMalloc"));
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&parts_, bytes), "cudaMalloc"));
    reserved_ = floats;
    return Status();
  }

  Status NcclStatus(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return Status();
    return Status(Code::kUnavailable, std::string(what) + " on rank " + std::to_string(rank()) +
                                          ": " + nccl_.error_string(result));
  }
  static Status Cancelled() { return Status(Code::kCancelled, "the group was given up"); }

  const CollectiveOptions options_;
  const NcclLibrary nccl_;
  const int gpu_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  float* values_ = nullptr;  // [reserved_], device
  float* parts_ = nullptr;   // [reserved_], device
  size_t reserved_ = 0;
  std::atomic<bool> aborted_ = false;
};

// Rank 0 draws the group's number, the others read it from the board.
Result<ncclUniqueId> AgreeOnId(const CollectiveOptions& options, const NcclLibrary& nccl,
                               Board& board) {
  const std::string key = options.group + "/nccl/id";
  ncclUniqueId id;
  if (options.rank == 0) {
    if (const ncclResult_t result = nccl.get_unique_id(&id); result != ncclSuccess) {
      return Status(Code::kUnavailable,
                    std::string("ncclGetUniqueId: ") + nccl.error_string(result));
    }
    HDPS_RETURN_IF_ERROR(board.Put(key, std::string(id.internal, sizeof(id.internal))));
    return id;
  }
  HDPS_ASSIGN_OR_RETURN(const std::string text, board.Get(key));
  if (text.size() != sizeof(id.internal)) {
    return Status(Code::kCorruption, key + " has " + std::to_string(text.size()) +
                                         " bytes, expected " + std::to_string(sizeof(id.internal)));
  }
  std::memcpy(id.internal, text.data(), sizeof(id.internal));
  return id;
}

}  // namespace

uint32_t CountNcclGpus(std::string* why_none) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    *why_none = std::string("no GPU: ") + cudaGetErrorString(error);
    return 0;
  }
  NcclLibrary nccl;
  if (const Status loaded = LoadNccl(&nccl); !loaded.ok()) {
    *why_none = loaded.message();
    return 0;
  }
  return static_cast<uint32_t>(count);
}

Result<std::unique_ptr<Collective>> NewNcclCollective(const CollectiveOptions& options,
                                                      uint32_t gpu, Board& board) {
  NcclLibrary nccl;
  HDPS_RETURN_IF_ERROR(LoadNccl(&nccl));
  HDPS_ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnId(options, nccl, board));
  auto collective = std::make_unique<NcclCollective>(options, nccl, gpu);
  HDPS_RETURN_IF_ERROR(collective->Connect(id));
  return std::unique_ptr<Collective>(std::move(collective));
}

#else  // HDPS_WITH_NCCL

uint32_t CountNcclGpus(std::string* why_none) {
  *why_none = "this build has no CUDA or no NCCL";
  return 0;
}

Result<std::unique_ptr<Collective>> NewNcclCollective(const CollectiveOptions&, uint32_t, Board&) {
  return Status(Code::kInvalidArgument,
                "parallel.collective: 'nccl': this build has no CUDA or no NCCL; use 'gloo'");
}

#endif  // HDPS_WITH_NCCL

}  // namespace hdps
