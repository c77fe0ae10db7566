// Emulates ranks as threads of one process. Sent data stays with the engine until the other rank's
// stream has reached its receive, and no stream continues before its whole group of calls is done.
#include <cuda_fp16.h>
#include <nccl.h>

#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/engine.h"

namespace cuda_on_cpu {
namespace {

// What the ranks add in one call.
struct Addends {
  std::map<int, std::vector<std::byte>> of_rank;
  int taken = 0;  // Ranks that have their sum.
};

// All ranks of one id.
struct Ring {
  int ranks = 0;
  std::map<uint64_t, Addends> sums;  // By number.
  std::map<int, int> devices;        // [ranks]
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
  uint64_t sums = 0;  // Number of the next sum.
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
// A sum over all ranks, of which this one takes `count` values from `begin` on.
struct Sum {
  uint64_t number;
  int rank;
  ncclDataType_t type;
  const void* from;
  size_t count_from;
  void* to;
  size_t begin, count;
  bool joined = false, done = false;
};
struct Group {
  int depth = 0;
  Communicator* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Move> moves;
  std::vector<Sum> sums;
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

size_t BytesOf(ncclDataType_t type) { return type == ncclFloat32 ? 4 : 2; }

float Widened(ncclDataType_t type, const std::byte* from) {
  if (type == ncclFloat32) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, from, sizeof(half));
  if (type == ncclFloat16) return __half2float(__ushort_as_half(half));
  return std::bit_cast<float>(uint32_t{half} << 16);
}

uint16_t ToHalf(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  return sign | __half_as_ushort(__float2half_rn(std::fabs(value)));
}

// Returns the value as it is in the type, rounded to nearest, ties to even.
float Rounded(ncclDataType_t type, float value) {
  if (type == ncclFloat16) return __half2float(__ushort_as_half(ToHalf(value)));
  if (type == ncclFloat32) return value;
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}

// Writes a value that Rounded() leaves as it is.
void Narrow(ncclDataType_t type, float value, std::byte* to) {
  if (type == ncclFloat32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const uint16_t half = type == ncclFloat16
                            ? ToHalf(value)
                            : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  std::memcpy(to, &half, sizeof(half));
}

// Returns true when this rank has all its sums, which are added from the last rank to the first.
bool Add(Ring& ring, std::vector<Sum>& sums) {
  bool all = true, any = false;
  for (Sum& sum : sums) {
    if (sum.done) continue;
    Addends& addends = ring.sums[sum.number];
    const size_t bytes = BytesOf(sum.type);
    if (!std::exchange(sum.joined, true)) {
      const auto* const from = static_cast<const std::byte*>(sum.from);
      addends.of_rank[sum.rank].assign(from, from + sum.count_from * bytes);
      any = true;
    }
    if (static_cast<int>(addends.of_rank.size()) < ring.ranks) {
      all = false;
      continue;
    }
    for (size_t i = 0; i < sum.count; ++i) {
      const size_t at = (sum.begin + i) * bytes;
      float value = Widened(sum.type, &addends.of_rank[ring.ranks - 1][at]);
      for (int rank = ring.ranks - 1; rank-- > 0;) {
        value = Rounded(sum.type, value + Widened(sum.type, &addends.of_rank[rank][at]));
      }
      Narrow(sum.type, value, static_cast<std::byte*>(sum.to) + i * bytes);
    }
    sum.done = any = true;
    if (++addends.taken == ring.ranks) ring.sums.erase(sum.number);
  }
  if (any) Engine::Get().Notify();
  return all;
}

ncclResult_t Submit() {
  if (group.moves.empty() && group.sums.empty()) return ncclSuccess;
  auto moves = std::make_shared<std::vector<Move>>(std::exchange(group.moves, {}));
  auto sums = std::make_shared<std::vector<Sum>>(std::exchange(group.sums, {}));
  auto first = std::make_shared<bool>(true);
  for (Move& move : *moves) CheckArgument(&move.data, sizeof(move.data));
  for (Sum& sum : *sums) {
    CheckArgument(&sum.from, sizeof(sum.from));
    CheckArgument(&sum.to, sizeof(sum.to));
  }
  const auto work = [ring = group.comm->ring, aborted = group.comm->aborted, moves, sums, first] {
    if (*aborted) return true;
    if (*first) ++Engine::Get().counters.collectives;
    const bool moved = Try(*ring, *moves, std::exchange(*first, false));
    return Add(*ring, *sums) && moved;
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

ncclResult_t AddSum(const void* from, size_t count_from, void* to, size_t begin, size_t count,
                    ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  if (group.depth == 0) Fail("calls of NCCL outside ncclGroupStart() are not modelled");
  group.comm = comm;
  group.stream = stream;
  group.sums.push_back({comm->sums++, comm->rank, type, from, count_from, to, begin, count});
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
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return AddSum(from, count, to, 0, count, type, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count_to, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  const auto ranks = static_cast<size_t>(comm->ring->ranks);
  return AddSum(from, count_to * ranks, to, count_to * static_cast<size_t>(comm->rank), count_to,
                type, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  auto* const all = static_cast<std::byte*>(to);
  if (type != ncclUint8 || from != all + count * static_cast<size_t>(comm->rank)) {
    Fail("a gather that is not in place, or not of bytes, is not modelled");
  }
  for (int rank = 0; rank < comm->ring->ranks; ++rank) {
    ncclBroadcast(from, all + count * static_cast<size_t>(rank), count, type, rank, comm, stream);
  }
  return ncclSuccess;
}
