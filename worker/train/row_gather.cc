// Requests out, replies scattered to their places.
#include "worker/train/row_gather.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {

RowGather::RowGather(const Job& job, NodeChannel& channel, MonotonicClock& clock)
    : job_(job), channel_(channel), clock_(clock), rows_(job.tables.size()) {}

RowGather::~RowGather() { Forget(); }

void RowGather::Ask(const PreparedStep& step, const PullTerms& terms) {
  CHECK(!asked());
  std::vector<ServerRequest> requests = step.split.Pulls(terms);
  servers_.clear();
  for (const ServerRequest& request : requests) servers_.push_back(request.server);
  asked_ns_ = clock_.NowNs();
  ticket_ = channel_.Start(std::move(requests));
}

Status RowGather::Take(const PreparedStep& step, std::optional<std::span<float>> dense) {
  CHECK(asked());
  const int64_t begin = clock_.NowNs();
  int64_t arrived = begin;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies,
                        channel_.Wait(*std::exchange(ticket_, std::nullopt), &arrived));
  times_.hidden_ns += std::max<int64_t>(std::min(begin, arrived) - asked_ns_, 0);
  std::vector<std::span<float>> places;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    if (job_.tables[t].dense) continue;
    rows_[t].resize(step.parts.KeysOf({t}).size() * job_.tables[t].dim);
    places.push_back(rows_[t]);
  }
  if (dense.has_value()) places.push_back(*dense);
  for (size_t i = 0; i < replies.size(); ++i) {
    PullReply reply;
    HDPS_RETURN_IF_ERROR(DecodeMessage(replies[i], &reply));
    HDPS_RETURN_IF_ERROR(step.split.Scatter(servers_[i], reply, places));
  }
  times_.waited_ns += clock_.NowNs() - begin;
  return Status();
}

void RowGather::Forget() {
  if (ticket_.has_value()) channel_.Cancel(*std::exchange(ticket_, std::nullopt));
}

}  // namespace hdps
