// Fuzzes the files of a recorded run: what is accepted and written again is the same.
#include <glog/logging.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "server/record/order_format.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

constexpr OrderHeader kHeader{.job_digest = 77, .mode = Mode::kSsp};

std::string FileOf(const std::vector<OrderItem>& items) {
  OrderEncoder encoder;
  for (const OrderItem& item : items) encoder.Add(item);
  return OrderEncoder::Header(kHeader) + encoder.TakeBlock();
}

// Returns the file of a block's items, with the length and the checksum that they have.
std::string Sealed(std::string_view items) {
  const auto checksum = static_cast<uint32_t>(HashBytes(std::as_bytes(std::span(items))));
  return OrderEncoder::Header(kHeader) + BytesOf(static_cast<uint32_t>(items.size())) +
         BytesOf(checksum) + std::string(items);
}

Result<OrderFile> Decode(std::string_view bytes) {
  return DecodeOrderFile(std::as_bytes(std::span(bytes)), "record");
}

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  const bool repaired = TakeChecksumRepair(input);
  const Result<OrderFile> read =
      Decode(repaired ? Sealed(input.TakeRest()) : std::string(input.TakeRest()));
  if (!read.ok()) return Refused(read.status(), Code::kInvalidArgument);
  const std::string written = FileOf(read->items);
  const Result<OrderFile> again = Decode(written);
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(again->items.size(), read->items.size());
  CHECK(FileOf(again->items) == written);
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds() {
  const std::string file = FileOf(
      {ViewMark{{3}, 2, {{0}, {1}, {0}}, {{1}}}, GroupMark{{1}}, LoadMark{40},
       OrderEntry{OrderKind::kTrainPull, {0}, 40, 0}, OrderEntry{OrderKind::kPush, {0}, 40, 0},
       OrderEntry{OrderKind::kPrefetch, {9}, 42, 3}, OrderEntry{OrderKind::kAdvance, {0}, 41, 0},
       DigestMark{{5, 6}, 42, true}});
  const size_t begin = OrderEncoder::Header(kHeader).size() + 8;  // Length and checksum.
  return {'\0' + file, '\1' + file.substr(begin)};
}

const AddTarget order({"order", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
