// Compares the counts of two moments.
#include "scheduler/balance/load_book.h"

#include "common/protocol/view.h"

namespace hdps {

void LoadBook::OnView(const View& view, TimeMs now) {
  std::vector<PeerId> primaries;
  for (const ServerId owner : view.shards.owner) {
    primaries.push_back(view.servers[owner.value].peer);
  }
  if (primaries == primaries_) return;
  primaries_ = std::move(primaries);
  newest_.assign(primaries_.size(), {});
  before_ = newest_;
  begun_ = now;
}

void LoadBook::Take(PeerId from, const std::vector<ShardLoad>& loads) {
  for (const ShardLoad& load : loads) {
    const uint32_t shard = load.shard.value;
    if (shard < primaries_.size() && primaries_[shard] == from) newest_[shard] = {from, load};
  }
}

std::optional<WorkPeriod> LoadBook::Turn(TimeMs now) {
  std::optional<WorkPeriod> period(std::in_place);
  period->lasted_ms = now - begun_;
  for (size_t s = 0; s < newest_.size() && period; ++s) {
    const Told &was = before_[s], &is = newest_[s];
    const bool told = was.from == is.from && is.from != PeerId() &&
                      is.load.busy_ns >= was.load.busy_ns && is.load.rows >= was.load.rows;
    if (!told) {
      period.reset();
      break;
    }
    period->shards.push_back({static_cast<double>(is.load.busy_ns - was.load.busy_ns) / 1e9,
                              static_cast<double>(is.load.rows - was.load.rows), is.load.bytes});
  }
  before_ = newest_;
  begun_ = now;
  return period;
}

}  // namespace hdps
