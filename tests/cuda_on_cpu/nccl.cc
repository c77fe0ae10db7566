// Emulates ranks as threads of one process. Sent data stays with the engine until the other rank's
// stream has reached its receive, and no stream continues before its whole group of calls is done.
#include <nccl.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/engine.h"

namespace cuda_on_cpu {
namespace {

// All ranks of one id.
struct Ring {
  int ranks = 0;
  std::map<int, int> devices;  // [ranks]
  // Sent and not yet received, by (from, to, number).
  std::map<std::tuple<int, int, uint64_t>, std::pair<const void*, size_t>> sent;
};

}  // namespace

struct Communicator {
  std::shared_ptr<Ring> ring;
  int rank = 0;
  std::shared_ptr<bool> aborted;
  // Number of the next move from one rank to another.
  std::map<std::pair<int, int>, uint64_t> numbers;
};

namespace {

// A send or receive.
struct Move {
  bool sends;
  int from, to;
  uint64_t number;
  void* data;
  size_t bytes;
  bool done = false;
};
struct Group {
  int depth = 0;
  Communicator* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Move> moves;
};
thread_local Group group;

std::map<std::string, std::shared_ptr<Ring>>& Rings() {
  static auto* const rings = new std::map<std::string, std::shared_ptr<Ring>>();
  return *rings;
}

// Returns true when all moves are done; a send is done when it was received.
bool Try(Ring& ring, std::vector<Move>& moves, bool first) {
  bool all = true, any = false;
  for (Move& move : moves) {
    if (move.done) continue;
    const auto key = std::tuple(move.from, move.to, move.number);
    const auto found = ring.sent.find(key);
    if (move.sends) {
      if (first) ring.sent[key] = {move.data, move.bytes}, any = true;
      move.done = !first && found == ring.sent.end();
    } else if (found != ring.sent.end()) {
      if (found->second.second != move.bytes) Fail("a receive of another size than its send");
      std::memcpy(move.data, found->second.first, move.bytes);
      ring.sent.erase(found);
      move.done = any = true;
    }
    all &= move.done;
  }
  if (any) Engine::Get().Notify();
  return all;
}

ncclResult_t Submit() {
  if (group.moves.empty()) return ncclSuccess;
  auto moves = std::make_shared<std::vector<Move>>(std::exchange(group.moves, {}));
  auto first = std::make_shared<bool>(true);
  for (Move& move : *moves) CheckArgument(&move.data, sizeof(move.data));
  const auto work = [ring = group.comm->ring, aborted = group.comm->aborted, moves, first] {
    if (*aborted) return true;
    if (*first) ++Engine::Get().counters.collectives;
    return Try(*ring, *moves, std::exchange(*first, false));
  };
  Engine::Get().Add(group.stream, work);
  return ncclSuccess;
}

ncclResult_t AddMove(bool sends, int from, int to, void* data, size_t bytes, ncclComm_t comm,
                     cudaStream_t stream) {
  if (group.depth == 0) Fail("calls of NCCL outside ncclGroupStart() are not modelled");
  group.comm = comm;
  group.stream = stream;
  group.moves.push_back({sends, from, to, comm->numbers[{from, to}]++, data, bytes});
  return ncclSuccess;
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "invalid usage";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const auto lock = Engine::Get().Lock();
  static uint64_t next = 1;
  std::memset(id->internal, 0, sizeof(id->internal));
  const uint64_t number = next++;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) Fail("communicators whose calls block are not modelled");
  const auto lock = Engine::Get().Lock();
  std::shared_ptr<Ring>& ring = Rings()[std::string(id.internal, sizeof(id.internal))];
  if (ring == nullptr) ring = std::make_shared<Ring>();
  ring->ranks = ranks;
  ring->devices[rank] = CurrentDevice();
  *comm = new Communicator{ring, rank, std::make_shared<bool>(false), {}};
  Engine::Get().Notify();
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  auto lock = Engine::Get().Lock();
  const std::map<int, int>& devices = comm->ring->devices;
  if (static_cast<int>(devices.size()) < comm->ring->ranks) {
    *state = ncclInProgress;
    Engine::Get().WorkABit(lock, nullptr);
    return ncclSuccess;
  }
  *state = ncclSuccess;
  const int own = devices.at(comm->rank);
  for (const auto& [other, device] : devices) {  // Refused, as by NCCL.
    if (other != comm->rank && device == own) *state = ncclInvalidUsage;
  }
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const auto lock = Engine::Get().Lock();
  *comm->aborted = true;
  std::erase_if(comm->ring->sent,
                [comm](const auto& sent) { return std::get<0>(sent.first) == comm->rank; });
  Engine::Get().Notify();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return --group.depth == 0 ? Submit() : ncclSuccess; }
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return AddMove(true, comm->rank, peer, const_cast<void*>(data), count, comm, stream);
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return AddMove(false, peer, comm->rank, data, count, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  if (comm->rank != root) return AddMove(false, root, comm->rank, to, count, comm, stream);
  for (int peer = 0; peer < comm->ring->ranks; ++peer) {
    if (peer != root) AddMove(true, root, peer, const_cast<void*>(from), count, comm, stream);
  }
  return ncclSuccess;
}
