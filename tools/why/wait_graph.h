// The members of a job as a graph: an edge leads to whom one waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace hdps {

struct StatusReply;

// What a member says is as old as its last heartbeat: a wait shorter than this may be over, and who
// says nothing for so long is silent.
int64_t LateMs(const StatusReply& status);

// Invariant: an edge (a, b) says that `a` was heard to wait for `b`, which is a member too and has
// not come to the same point itself.
class WaitGraph {
 public:
  // Of a member that is silent nothing is known any more.
  explicit WaitGraph(const StatusReply& status);

  size_t size() const { return edges_.size(); }
  const std::set<size_t>& of(size_t member) const { return edges_[member]; }
  bool is_silent(size_t member) const { return silent_[member]; }
  // In a call of a collective for which all others that it names have come too.
  bool in_full_group(size_t member) const { return full_group_[member]; }
  // Somebody waits for it.
  bool is_awaited(size_t member) const;
  // Those at the ends of the chains that begin with `from`: they wait for no member.
  std::set<size_t> EndsFrom(const std::set<size_t>& from) const;
  // Somebody has waited for it for longer than LateMs().
  bool is_overdue(size_t member) const;
  // Of those that `from` leads to, the ones in a circle of such waits: they wait for themselves.
  std::set<size_t> CirclesFrom(const std::set<size_t>& from) const;
  // Those that wait for one of `causes`, over however many others.
  std::set<size_t> WaitFor(const std::set<size_t>& causes) const;

 private:
  using Edges = std::vector<std::set<size_t>>;
  static std::set<size_t> Reached(const Edges& edges,
                                  const std::set<size_t>& from);  // With `from`.

  Edges edges_, overdue_;  // All; those that have lasted.
  std::vector<bool> silent_, full_group_;
};

}  // namespace hdps
