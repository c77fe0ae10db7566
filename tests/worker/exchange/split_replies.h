// What a server answers to requests of a KeySplit.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "worker/exchange/key_split.h"

namespace hdps {

template <typename Float>
std::vector<std::span<Float>> Spans(std::vector<std::vector<float>>& values) {
  return {values.begin(), values.end()};
}

// As `server` would answer with these rows.
inline PullReply ReplyWith(const KeySplit& split, uint32_t server, Buffer rows) {
  PullReply reply;
  reply.tables = split.TablesOf(ServerId{server});
  for (TableKeys& table : reply.tables) table.shard_counts.clear();
  reply.rows = std::move(rows);
  return reply;
}

}  // namespace hdps
