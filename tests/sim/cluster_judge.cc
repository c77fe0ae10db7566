// Judges what came of a cluster: ends, rows, copies and promises.
#include <glog/logging.h>

#include <algorithm>

#include "tests/sim/cluster.h"

namespace hdps::sim {
namespace {

void AddCounters(const ServerCounters& from, ServerCounters* to) {
  to->pulls += from.pulls;
  to->pulls_parked += from.pulls_parked;
  to->pushes += from.pushes;
  to->pushes_repeated += from.pushes_repeated;
  to->steps += from.steps;
  to->refused += from.refused;
  to->dropped += from.dropped;
  to->staleness_max = std::max(to->staleness_max, from.staleness_max);
}

}  // namespace

std::string Outcome::Describe() const {
  std::string text = std::string(finished ? "" : "did not finish; ") +
                     (exact ? "" : "final rows are not the sum of the pushes; ") +
                     std::to_string(ended_at) + " ms, " + std::to_string(frames) + " frames";
  for (size_t i = 0; i < problems.size() && i < 5; ++i) text += "\n  " + problems[i];
  return text;
}

Outcome Cluster::Judge(bool all_done) const {
  Outcome outcome;
  outcome.finished = all_done && scheduler_ != nullptr;
  outcome.trace = network_.trace();
  outcome.ended_at = network_.now();
  outcome.frames = network_.frames_delivered();
  outcome.problems = tally_.violations();
  outcome.loaded = loaded_;
  outcome.restarted = restarted_;
  outcome.went_back = went_back_;
  outcome.taken_over = taken_over_;
  outcome.scaled = scaled_;
  outcome.promoted = promoted_;
  if (scheduler_ == nullptr) return outcome;
  outcome.power_lost = power_lost_;
  uint32_t excuses = unconfirmed_;
  const auto ended = [&](const std::string& who, PeerId peer, const Node& node) {
    if (!node.done() || node.exit_status() == 0 || IsExcused(peer, node, &excuses)) return;
    outcome.finished = false;
    outcome.problems.push_back(who + " ended with " + std::to_string(node.exit_status()) + ": " +
                               node.exit_reason());
  };
  ended("scheduler", kSchedulerPeer, *scheduler_);
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].node == nullptr) continue;
    ended("server " + std::to_string(s), PeerOf(Role::kServer, s), *servers_[s].node);
    AddCounters(servers_[s].node->counters(), &outcome.servers);
  }
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (workers_[w].node == nullptr) continue;
    ended("worker " + std::to_string(w), PeerOf(Role::kWorker, w), *workers_[w].node);
    outcome.train_ms.push_back(workers_[w].compute->train_ms());
    const std::string& trouble = workers_[w].compute->trouble();
    if (!trouble.empty()) {
      outcome.problems.push_back("worker " + std::to_string(w) + ": " + trouble);
    }
  }
  if (options_.mode != Mode::kAsync && outcome.servers.staleness_max > options_.staleness_bound) {
    outcome.problems.push_back("a server saw a pull " +
                               std::to_string(outcome.servers.staleness_max) + " clocks ahead");
  }
  JudgeCopies(&outcome);
  if (!digests_.empty() && digests_.size() == digest_commands_.size()) {
    RowsDigest actual;
    for (const auto& [peer, done] : digests_) {
      actual.Add({{done.digest[0], done.digest[1]}, done.rows});
    }
    const RowsDigest expected =
        ExpectedDigest(job_->seed, tally_.history(),
                       options_.steps_per_epoch * (options_.judged ? kJudgedEnd : options_.epochs),
                       options_.rows_leave);
    outcome.exact = actual.sum[0] == expected.sum[0] && actual.sum[1] == expected.sum[1] &&
                    actual.rows == expected.rows;
  }
  return outcome;
}

bool Cluster::IsExcused(PeerId peer, const Node& node, uint32_t* excuses) const {
  if (peer == kSchedulerPeer || scheduler_->exit_status() != 0) return false;
  const auto is_there = [&](const std::vector<Member>& members) {
    return std::ranges::count(members, peer, &Member::peer) > 0;
  };
  const std::string& why = node.exit_reason();
  if (!is_there(newest_view_.Holders()) && !is_there(newest_view_.workers)) {
    // It was given up and had no time to come again, or came when it was not wanted any more.
    const bool not_wanted = why.find("is one too many") != std::string::npos ||
                            why.find("is beyond the job's") != std::string::npos ||
                            why.find("is taken") != std::string::npos;
    return node.exit_status() == 3 || (node.exit_status() == 2 && not_wanted);
  }
  if (node.exit_status() != 3 || *excuses == 0) return false;
  --*excuses;
  return true;
}

void Cluster::JudgeCopies(Outcome* outcome) const {
  for (uint32_t group = 0; group < newest_view_.servers.size(); ++group) {
    const std::vector<Member> holders = newest_view_.HoldersOf({group});
    std::optional<RowsDigest> first;
    for (uint32_t s = 0; s < servers_.size(); ++s) {
      const ServerNode* const server = servers_[s].node.get();
      if (server == nullptr || !server->done() || server->exit_status() != 0) continue;
      if (std::ranges::count(holders, PeerOf(Role::kServer, s), &Member::peer) == 0) continue;
      const std::optional<Result<RowsDigest>> digest = server->DigestOf({group});
      if (!digest) continue;
      CHECK(digest->ok()) << digest->status().message();
      if (!first) first = **digest;
      if ((*digest)->rows == first->rows && (*digest)->sum[0] == first->sum[0] &&
          (*digest)->sum[1] == first->sum[1]) {
        continue;
      }
      outcome->problems.push_back("the copies of group " + std::to_string(group) + " differ");
    }
  }
}

}  // namespace hdps::sim
