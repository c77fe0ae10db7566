// Places shards evenly.
#include "scheduler/balance/shard_placement.h"

#include <vector>

namespace hdps {

ShardMap EvenShards(uint32_t num_shards, uint32_t num_servers) {
  ShardMap map;
  for (uint64_t s = 0; s < num_shards; ++s) {
    map.owner.push_back({static_cast<uint32_t>(s * num_servers / num_shards)});
  }
  return map;
}

ShardMap MoveFewestShards(const ShardMap& before, uint32_t num_servers) {
  const uint32_t num_shards = before.num_shards();
  const uint32_t least = num_shards / num_servers;
  uint32_t with_one_more = num_shards % num_servers;
  std::vector<uint32_t> has(num_servers, 0);
  for (const ServerId owner : before.owner) {
    if (owner.value < num_servers) ++has[owner.value];
  }
  // A server with more than the smallest share keeps one more, while there are such shares.
  std::vector<uint32_t> part(num_servers, least);
  for (uint32_t s = 0; s < num_servers && with_one_more > 0; ++s) {
    if (has[s] > least) ++part[s], --with_one_more;
  }
  for (uint32_t s = 0; s < num_servers && with_one_more > 0; ++s) {
    if (part[s] == least) ++part[s], --with_one_more;
  }
  ShardMap after = before;
  std::vector<uint32_t> kept(num_servers, 0), homeless;
  for (uint32_t shard = 0; shard < num_shards; ++shard) {
    const uint32_t owner = before.owner[shard].value;
    if (owner < num_servers && kept[owner] < part[owner]) {
      ++kept[owner];
    } else {
      homeless.push_back(shard);
    }
  }
  uint32_t server = 0;
  for (const uint32_t shard : homeless) {
    while (kept[server] == part[server]) ++server;
    after.owner[shard] = {server};
    ++kept[server];
  }
  return after;
}

}  // namespace hdps
