// Transport between GPUs: NCCL moves bytes, and a kernel combines them in the order of the ranks.
// NCCL's own sums, whose order depends on the topology, are its LibraryCalls.
#include "worker/collective/rank_transport.h"

#ifdef HDPS_WITH_NCCL
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "common/platform/monotonic_clock.h"
#include "worker/collective/device_values.h"
#endif

namespace hdps {

#ifdef HDPS_WITH_NCCL
namespace {

// If null, the program itself must define NCCL's functions.
#ifndef HDPS_NCCL_LIBRARY
#define HDPS_NCCL_LIBRARY "libnccl.so.2"
#endif

// The functions of libnccl that are used, found at run time.
struct NcclLibrary {
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
};

template <typename Function>
bool Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// Never unloads the library, because NCCL keeps threads of its own.
Status LoadNccl(NcclLibrary* nccl) {
  void* handle = dlopen(HDPS_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Status(Code::kInvalidArgument, std::string("NCCL cannot be loaded: ") + dlerror());
  }
  const bool whole =
      Find(handle, "ncclGetUniqueId", &nccl->get_unique_id) &&
      Find(handle, "ncclCommInitRankConfig", &nccl->comm_init_rank_config) &&
      Find(handle, "ncclCommGetAsyncError", &nccl->comm_get_async_error) &&
      Find(handle, "ncclCommDestroy", &nccl->comm_destroy) &&
      Find(handle, "ncclCommAbort", &nccl->comm_abort) &&
      Find(handle, "ncclGroupStart", &nccl->group_start) &&
      Find(handle, "ncclGroupEnd", &nccl->group_end) && Find(handle, "ncclSend", &nccl->send) &&
      Find(handle, "ncclRecv", &nccl->recv) && Find(handle, "ncclBroadcast", &nccl->broadcast) &&
      Find(handle, "ncclAllReduce", &nccl->all_reduce) &&
      Find(handle, "ncclReduceScatter", &nccl->reduce_scatter) &&
      Find(handle, "ncclAllGather", &nccl->all_gather) &&
      Find(handle, "ncclGetErrorString", &nccl->error_string);
  if (!whole) {
    return Status(
        Code::kInvalidArgument,
        "libnccl.so.2 lacks ncclCommInitRankConfig or others of its calls; NCCL 2.14 or newer is "
        "needed");
  }
  return Status();
}

Status CudaStatus(int error, const char* what) {
  if (error == cudaSuccess) return Status();
  return Status(Code::kUnavailable,
                std::string(what) + ": " + cudaGetErrorString(static_cast<cudaError_t>(error)));
}

// Requires a reduction of floats or halves.
ncclDataType_t NcclTypeOf(Reduction reduction) {
  if (reduction == Reduction::kSumFp16) return ncclFloat16;
  return reduction == Reduction::kSumBf16 ? ncclBfloat16 : ncclFloat32;
}

// Moves bytes by NCCL without blocking calls: a communicator may be used by one thread only, and
// that thread must also be able to end it. Each operation is polled, in turn with a look at Abort()
// and at the time limit.
//
// Invariant: comm_ is null once the communicator has been given up.
class NcclTransport : public RankTransport, private LibraryCalls {
 public:
  NcclTransport(const CollectiveOptions& options, const NcclLibrary& nccl, uint32_t gpu)
      : options_(options), nccl_(nccl), gpu_(static_cast<int>(gpu)), time_(NewSystemClock()) {}

  ~NcclTransport() override {
    cudaSetDevice(gpu_);
    if (aborted_) GiveUp();
    if (comm_ != nullptr) nccl_.comm_destroy(comm_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    for (const Memory& memory : scratch_) cudaFree(memory.data);
  }

  Status Connect(const ncclUniqueId& id) {
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    HDPS_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    HDPS_RETURN_IF_ERROR(
        NcclStatus(nccl_.comm_init_rank_config(&comm_, static_cast<int>(size()), id,
                                               static_cast<int>(rank()), &config),
                   "ncclCommInitRankConfig"));
    return Settle("joining the group");
  }

  uint32_t rank() const override { return options_.rank; }
  uint32_t size() const override { return options_.size; }
  const char* name() const override { return "nccl"; }
  MemorySpace space() const override { return MemorySpace::kDevice; }

  Result<std::byte*> Reserve(Scratch scratch, size_t bytes) override {
    // Every call begins here, so the calling thread has the right GPU from now on.
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    Memory& memory = scratch_[static_cast<size_t>(scratch)];
    if (bytes <= memory.size) return memory.data;
    cudaFree(memory.data);
    memory = Memory();
    void* data = nullptr;
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&data, bytes), "cudaMalloc"));
    memory = {static_cast<std::byte*>(data), bytes};
    return memory.data;
  }

  Status CopyIn(std::byte* to, const void* from, MemorySpace space, size_t size) override {
    return Copy(to, from, space, size);
  }
  Status CopyOut(void* to, MemorySpace space, const std::byte* from, size_t size) override {
    return Copy(to, from, space, size);
  }

  Status Exchange(std::span<const RankMove> sends, std::span<const RankMove> receives) override {
    return InGroup([&] {
      for (const RankMove& move : sends) {
        HDPS_RETURN_IF_ERROR(NcclStatus(nccl_.send(move.data, move.size, ncclUint8,
                                                   static_cast<int>(move.peer), comm_, stream_),
                                        "ncclSend"));
      }
      for (const RankMove& move : receives) {
        HDPS_RETURN_IF_ERROR(NcclStatus(nccl_.recv(move.data, move.size, ncclUint8,
                                                   static_cast<int>(move.peer), comm_, stream_),
                                        "ncclRecv"));
      }
      return Status();
    });
  }

  // Uses NCCL's broadcast, which finds the best way between machines, if the members are all ranks.
  Status Spread(std::span<const uint32_t> members, std::span<const RankMove> parts) override {
    if (members.size() < size()) return RankTransport::Spread(members, parts);
    return InGroup([&] {
      for (const RankMove& part : parts) {
        HDPS_RETURN_IF_ERROR(
            NcclStatus(nccl_.broadcast(part.data, part.data, part.size, ncclUint8,
                                       static_cast<int>(part.peer), comm_, stream_),
                       "ncclBroadcast"));
      }
      return Status();
    });
  }

  Status Combine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                 size_t count, std::byte* result) override {
    return CudaStatus(LaunchCombine(reduction, parts, stride, ranks, count, result, stream_),
                      "reduction");
  }

  LibraryCalls* library() override { return this; }
  bool scatters() const override { return true; }
  Status AllReduce(std::span<const ReducedValues> lists) override {
    return InGroup([&] {
      for (const ReducedValues& values : lists) {
        HDPS_RETURN_IF_ERROR(
            NcclStatus(nccl_.all_reduce(values.data, values.data, values.count,
                                        NcclTypeOf(values.reduction), ncclSum, comm_, stream_),
                       "ncclAllReduce"));
      }
      return Status();
    });
  }
  // In place, as NCCL has it: a rank's result is where its own part is.
  Status ReduceScatter(Reduction reduction, std::byte* parts, size_t count) override {
    return InGroup([&] {
      return NcclStatus(
          nccl_.reduce_scatter(parts, parts + rank() * count * ElementBytes(reduction), count,
                               NcclTypeOf(reduction), ncclSum, comm_, stream_),
          "ncclReduceScatter");
    });
  }
  Status AllGather(std::byte* all, size_t bytes) override {
    return InGroup([&] {
      return NcclStatus(
          nccl_.all_gather(all + rank() * bytes, all, bytes, ncclUint8, comm_, stream_),
          "ncclAllGather");
    });
  }

  Status Finish() override {
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    cudaError_t error = cudaErrorNotReady;
    ncclResult_t state = ncclSuccess;  // For example, the error of another rank that is gone.
    HDPS_RETURN_IF_ERROR(Await("an exchange", [&] {
      error = cudaStreamQuery(stream_);
      if (error != cudaErrorNotReady) return true;
      return comm_ != nullptr &&
             (nccl_.comm_get_async_error(comm_, &state) != ncclSuccess || state != ncclSuccess);
    }));
    if (error != cudaErrorNotReady) return CudaStatus(error, "cudaStreamQuery");
    return Healthy(state == ncclSuccess ? ncclSystemError : state, "an exchange");
  }

  void Abort() override { aborted_ = true; }

 private:
  struct Memory {
    std::byte* data = nullptr;
    size_t size = 0;
  };

  Status Copy(void* to, const void* from, MemorySpace space, size_t size) {
    // A copy to or from host memory waits for the stream, which may never end; so wait here, with
    // the time limit.
    if (space == MemorySpace::kHost) HDPS_RETURN_IF_ERROR(Finish());
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    return CudaStatus(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream_), "copy");
  }

  // Makes NCCL calls as one group.
  template <typename Calls>
  Status InGroup(const Calls& calls) {
    if (aborted_ || comm_ == nullptr) return Cancelled();
    HDPS_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), "cudaSetDevice"));
    HDPS_RETURN_IF_ERROR(NcclStatus(nccl_.group_start(), "ncclGroupStart"));
    const Status status = calls();
    const Status ended = NcclStatus(nccl_.group_end(), "ncclGroupEnd");
    if (!status.ok() || !ended.ok()) {
      GiveUp();
      return status.ok() ? ended : status;
    }
    return Settle("beginning an exchange");
  }

  // Returns when NCCL's own threads have finished the last request.
  Status Settle(const char* what) {
    ncclResult_t asked = ncclSuccess, state = ncclInProgress;
    HDPS_RETURN_IF_ERROR(Await(what, [&] {
      asked = nccl_.comm_get_async_error(comm_, &state);
      return asked != ncclSuccess || state != ncclInProgress;
    }));
    return Healthy(asked != ncclSuccess ? asked : state, what);
  }

  // Gives the communicator up if it has an error.
  Status Healthy(ncclResult_t state, const char* what) {
    Status status = NcclStatus(state, what);
    if (!status.ok()) GiveUp();
    return status;
  }

  // Polls until `done` returns true, or the group is given up.
  template <typename Done>
  Status Await(const char* what, const Done& done) {
    const int64_t begin = time_->NowNs();
    while (!done()) {
      if (aborted_ || comm_ == nullptr) return Cancelled();
      if (time_->NowNs() - begin > options_.timeout_ms * 1'000'000) {
        GiveUp();
        return Status(Code::kUnavailable, std::string("NCCL: ") + what + " of rank " +
                                              std::to_string(rank()) + " of " +
                                              std::to_string(size()) + " took over " +
                                              std::to_string(options_.timeout_ms) + " ms");
      }
      std::this_thread::yield();
    }
    return aborted_ ? Cancelled() : Status();
  }

  // Ends all transfers; the communicator is gone afterwards.
  void GiveUp() {
    if (comm_ != nullptr) nccl_.comm_abort(std::exchange(comm_, nullptr));
  }
  Status Cancelled() {
    GiveUp();
    return Status(Code::kCancelled, "the group was given up");
  }

  Status NcclStatus(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess || result == ncclInProgress) return Status();
    return Status(Code::kUnavailable, std::string(what) + " on rank " + std::to_string(rank()) +
                                          ": " + nccl_.error_string(result));
  }

  const CollectiveOptions options_;
  const NcclLibrary nccl_;
  const int gpu_;
  const std::unique_ptr<MonotonicClock> time_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Memory scratch_[kScratchKinds];
  std::atomic<bool> aborted_ = false;
};

// Rank 0 creates the group's id, and the others read it from the store.
Result<ncclUniqueId> AgreeOnId(const CollectiveOptions& options, const NcclLibrary& nccl,
                               RendezvousStore& store) {
  const std::string key = options.group + "/nccl/id";
  ncclUniqueId id;
  if (options.rank == 0) {
    if (const ncclResult_t result = nccl.get_unique_id(&id); result != ncclSuccess) {
      return Status(Code::kUnavailable,
                    std::string("ncclGetUniqueId: ") + nccl.error_string(result));
    }
    HDPS_RETURN_IF_ERROR(store.Put(key, std::string(id.internal, sizeof(id.internal))));
    return id;
  }
  HDPS_ASSIGN_OR_RETURN(const std::string text, store.Get(key));
  if (text.size() != sizeof(id.internal)) {
    return Status(Code::kCorruption, key + " has " + std::to_string(text.size()) +
                                         " bytes, expected " + std::to_string(sizeof(id.internal)));
  }
  std::memcpy(id.internal, text.data(), sizeof(id.internal));
  return id;
}

}  // namespace

std::string NcclGpuName(int gpu, std::string* why_none) {
  if (gpu < 0) {
    *why_none = "the model is not on a GPU";
    return "";
  }
  char name[32] = {};
  if (const cudaError_t error = cudaDeviceGetPCIBusId(name, sizeof(name), gpu);
      error != cudaSuccess) {
    cudaGetLastError();  // The next kernel that this thread starts is not to hear of it.
    *why_none = std::string("no GPU: ") + cudaGetErrorString(error);
    return "";
  }
  NcclLibrary nccl;
  if (const Status loaded = LoadNccl(&nccl); !loaded.ok()) {
    *why_none = loaded.message();
    return "";
  }
  return name;
}

Result<std::shared_ptr<RankTransport>> NewNcclTransport(const CollectiveOptions& options,
                                                        uint32_t gpu, RendezvousStore& store) {
  NcclLibrary nccl;
  HDPS_RETURN_IF_ERROR(LoadNccl(&nccl));
  HDPS_ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnId(options, nccl, store));
  auto transport = std::make_shared<NcclTransport>(options, nccl, gpu);
  HDPS_RETURN_IF_ERROR(transport->Connect(id));
  return std::shared_ptr<RankTransport>(std::move(transport));
}

#else  // HDPS_WITH_NCCL

std::string NcclGpuName(int, std::string* why_none) {
  *why_none = "this build has no CUDA or no NCCL";
  return "";
}

Result<std::shared_ptr<RankTransport>> NewNcclTransport(const CollectiveOptions&, uint32_t,
                                                        RendezvousStore&) {
  return Status(Code::kInvalidArgument,
                "parallel.collective: 'nccl': this build has no CUDA or no NCCL; use 'gloo'");
}

#endif  // HDPS_WITH_NCCL

}  // namespace hdps
