// Brings values into the memory of the transport, lets the library sum them, and takes them back.
#include "worker/collective/library_sums.h"

#include <algorithm>
#include <vector>

namespace hdps {

Status AllReduceByLibrary(RankTransport& transport, std::span<const ReducedValues> lists) {
  if (lists.empty()) return Status();
  const MemorySpace space = transport.space();
  size_t bytes = 0;
  for (const ReducedValues& values : lists) {
    if (values.space != space) bytes += Aligned(values.bytes());
  }
  HDPS_ASSIGN_OR_RETURN(std::byte * at, transport.Reserve(Scratch::kStaged, bytes));
  std::vector<ReducedValues> here(lists.begin(), lists.end());
  for (ReducedValues& values : here) {
    if (values.space == space) continue;
    HDPS_RETURN_IF_ERROR(transport.CopyIn(at, values.data, values.space, values.bytes()));
    values.data = at;
    values.space = space;
    at += Aligned(values.bytes());
  }
  HDPS_RETURN_IF_ERROR(transport.library()->AllReduce(here));
  for (size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].space == space) continue;
    HDPS_RETURN_IF_ERROR(transport.CopyOut(lists[i].data, lists[i].space,
                                           static_cast<const std::byte*>(here[i].data),
                                           lists[i].bytes()));
  }
  return transport.Finish();
}

// The library's parts have one length, so each rank's values are copied to the front of a part.
Status ReduceScatterByLibrary(RankTransport& transport, const ReducedValues& values,
                              std::span<const size_t> counts, void* mine) {
  const size_t longest = *std::ranges::max_element(counts);
  const size_t value_bytes = ElementBytes(values.reduction), part_bytes = longest * value_bytes;
  HDPS_ASSIGN_OR_RETURN(std::byte* const parts,
                        transport.Reserve(Scratch::kParts, part_bytes * counts.size()));
  const auto* from = static_cast<const std::byte*>(values.data);
  for (size_t r = 0; r < counts.size(); ++r) {
    const size_t bytes = counts[r] * value_bytes;
    HDPS_RETURN_IF_ERROR(transport.CopyIn(parts + part_bytes * r, from, values.space, bytes));
    from += bytes;
  }
  HDPS_RETURN_IF_ERROR(transport.library()->ReduceScatter(values.reduction, parts, longest));
  const uint32_t rank = transport.rank();
  HDPS_RETURN_IF_ERROR(
      transport.CopyOut(mine, values.space, parts + part_bytes * rank, counts[rank] * value_bytes));
  return transport.Finish();
}

}  // namespace hdps
