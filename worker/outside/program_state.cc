// Writes bytes into finite floats, and reads them back.
#include "worker/outside/program_state.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "worker/exchange/pull_plan.h"
#include "worker/exchange/row_transfer.h"

namespace hdps {
namespace {

constexpr uint32_t kFloats = kDenseChunkFloats;
constexpr size_t kBytesOfFloat = 3;
constexpr size_t kBytesOfChunk = kFloats * kBytesOfFloat;
constexpr size_t kChunksOfRequest = 4096;  // 16 MiB of rows.
constexpr uint32_t kFinishChunk = UINT32_MAX;
constexpr uint32_t kMagic = 0x48d605;  // Not 0, which a row without a store has everywhere.

Key KeyOf(uint32_t rank, uint64_t chunk) { return (uint64_t{rank} << 32) | chunk; }

KeysOfTable DenseKeysOf(const Job& job, std::span<const Key> keys) {
  KeysOfTable of;
  of.table = {static_cast<uint32_t>(job.tables.size() - 1)};
  of.shard_by = job.tables.back().shard_by;
  of.row_floats = kFloats;
  of.keys = keys;
  of.dense = true;
  return of;
}

// Writes a number below 2^48 as two floats.
void PutNumber(uint64_t number, float* to) {
  to[0] = static_cast<float>(number & 0xffffff);
  to[1] = static_cast<float>((number >> 24) & 0xffffff);
}
uint64_t NumberAt(const float* from) {
  const auto part = [](float value) {
    return value >= 0 && value < 0x1p24f ? static_cast<uint64_t>(value) : 0;
  };
  return part(from[0]) | part(from[1]) << 24;
}

uint64_t ChecksumOf(const std::string& bytes) {
  return HashBytes(std::as_bytes(std::span(bytes))) & 0xffffffffffff;
}

std::vector<float> Packed(std::span<const char> bytes) {
  std::vector<float> floats((bytes.size() + kBytesOfChunk - 1) / kBytesOfChunk * kFloats);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t byte = static_cast<uint8_t>(bytes[i]);
    floats[i / kBytesOfFloat] += static_cast<float>(byte << (8 * (i % kBytesOfFloat)));
  }
  return floats;
}

void Unpack(std::span<const float> floats, std::span<char> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto number = static_cast<uint32_t>(floats[i / kBytesOfFloat]);
    bytes[i] = static_cast<char>(number >> (8 * (i % kBytesOfFloat)) & 0xff);
  }
}

Status StoreChunks(const Job& job, NodeChannel& channel, std::span<const Key> keys, Clock clock,
                   std::span<const float> rows) {
  const std::array of{DenseKeysOf(job, keys)};
  return StoreRows(channel, of, clock, std::array{rows});
}

Status ReadChunks(const Job& job, NodeChannel& channel, std::span<const Key> keys, Clock clock,
                  std::span<float> rows) {
  const std::array of{DenseKeysOf(job, keys)};
  return ReadRows(channel, of, clock, PullMode::kRead, std::array{rows});
}

}  // namespace

Status ProgramState::Store(uint32_t rank, Clock clock, const std::string& bytes) {
  const size_t step = kChunksOfRequest * kBytesOfChunk;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const std::vector<float> rows =
        Packed(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
    std::vector<Key> keys;
    for (size_t c = 0; c < rows.size() / kFloats; ++c) {
      keys.push_back(KeyOf(rank, 1 + at / kBytesOfChunk + c));
    }
    HDPS_RETURN_IF_ERROR(StoreChunks(job_, channel_, keys, clock, rows));
  }
  std::vector<float> first(kFloats);
  first[0] = kMagic;
  PutNumber(static_cast<uint64_t>(clock), &first[1]);
  PutNumber(bytes.size(), &first[3]);
  PutNumber(ChecksumOf(bytes), &first[5]);
  return StoreChunks(job_, channel_, std::array{KeyOf(rank, 0)}, clock, first);
}

Result<std::optional<std::string>> ProgramState::Read(uint32_t rank, Clock clock) {
  std::vector<float> rows(kFloats);
  HDPS_RETURN_IF_ERROR(ReadChunks(job_, channel_, std::array{KeyOf(rank, 0)}, clock, rows));
  if (rows[0] != kMagic || NumberAt(&rows[1]) != static_cast<uint64_t>(clock)) {
    return std::optional<std::string>();
  }
  const uint64_t crc = NumberAt(&rows[5]);
  std::string bytes(NumberAt(&rows[3]), '\0');
  const size_t step = kChunksOfRequest * kBytesOfChunk;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const std::span<char> part = std::span(bytes).subspan(at, std::min(step, bytes.size() - at));
    std::vector<Key> keys;
    for (size_t c = 0; c * kBytesOfChunk < part.size(); ++c) {
      keys.push_back(KeyOf(rank, 1 + at / kBytesOfChunk + c));
    }
    rows.resize(keys.size() * kFloats);
    HDPS_RETURN_IF_ERROR(ReadChunks(job_, channel_, keys, clock, rows));
    Unpack(rows, part);
  }
  if (ChecksumOf(bytes) != crc) {
    return Status(Code::kCorruption, "the state of worker " + std::to_string(rank) + " of step " +
                                         std::to_string(clock) +
                                         " is not what was stored: its checksum differs");
  }
  return std::optional(std::move(bytes));
}

Status ProgramState::StoreFinish(Clock base, Clock clock) {
  std::vector<float> row(kFloats);
  row[0] = kMagic;
  PutNumber(static_cast<uint64_t>(base), &row[1]);
  PutNumber(static_cast<uint64_t>(clock), &row[3]);
  return StoreChunks(job_, channel_, std::array{KeyOf(channel_.rank().value, kFinishChunk)}, clock,
                     row);
}

Status ProgramState::DropFinish(Clock clock) {
  return StoreChunks(job_, channel_, std::array{KeyOf(channel_.rank().value, kFinishChunk)}, clock,
                     std::vector<float>(kFloats));
}

Result<std::optional<Clock>> ProgramState::ReadFinishes(Clock base) {
  std::vector<Key> keys;
  for (uint32_t rank = 0; rank < channel_.view()->workers.size(); ++rank) {
    keys.push_back(KeyOf(rank, kFinishChunk));
  }
  std::vector<float> rows(keys.size() * kFloats);
  HDPS_RETURN_IF_ERROR(ReadChunks(job_, channel_, keys, base, rows));
  Clock last = 0;
  for (size_t at = 0; at < rows.size(); at += kFloats) {
    const bool finished =
        rows[at] == kMagic && NumberAt(&rows[at + 1]) == static_cast<uint64_t>(base);
    if (!finished) return std::optional<Clock>();
    last = std::max(last, static_cast<Clock>(NumberAt(&rows[at + 3])));
  }
  return std::optional(last);
}

Ticket ProgramState::AskAtGate(Clock clock, Clock pushed) {
  const View& view = *channel_.view();
  const std::array keys{KeyOf(channel_.rank().value, kFinishChunk)};
  KeySplit split;
  split.Compute(view.shards, static_cast<uint32_t>(view.servers.size()),
                std::array{DenseKeysOf(job_, keys)});
  PullPlan plan;
  return channel_.Start(plan.Pull(split, {.clock = clock, .pushed = pushed}));
}

}  // namespace hdps
