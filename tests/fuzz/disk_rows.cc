// Fuzzes rows from disk: a changed block must be reported as damage, never used as data.
#include "embedding/disk/disk_rows.h"

#include <glog/logging.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embedding/disk/disk_store.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

// Keeps blocks in memory, and returns some of them changed.
class DamagedStore : public DiskStore {
 public:
  explicit DamagedStore(Input* input) : input_(*input) {}
  Status Put(const DiskSpace&, std::span<const DiskBlock> blocks) override {
    for (const DiskBlock& block : blocks) {
      const char* const bytes = reinterpret_cast<const char*>(block.bytes.data());
      CHECK(blocks_.emplace(block.number, std::string(bytes, block.bytes.size())).second);
    }
    return {};
  }
  Status Get(const DiskSpace&, std::span<const uint64_t> numbers, const Visit& visit) override {
    for (size_t k = 0; k < numbers.size(); ++k) {
      const auto found = blocks_.find(numbers[k]);
      CHECK(found != blocks_.end());
      const std::string bytes = Changed(found->second);
      // Puts the bytes at the end of an allocation, so that reading beyond them is detected.
      HDPS_RETURN_IF_ERROR(visit(k, std::as_bytes(std::span(bytes.data(), bytes.size()))));
    }
    return {};
  }
  Status Erase(const DiskSpace&, std::span<const uint64_t> numbers) override {
    for (const uint64_t number : numbers) CHECK_EQ(blocks_.erase(number), 1u);
    return {};
  }
  Status EraseAll(const DiskSpace&) override {
    blocks_.clear();
    return {};
  }
  Status Damaged(const std::string& what) const override { return {Code::kIoError, what}; }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t disk_bytes() const override { return 0; }
  bool damaged() const { return damaged_; }

 private:
  std::string Changed(const std::string& sound) {
    const uint8_t how = input_.Take();
    std::string bytes = sound;
    if (how % 4 == 1) bytes[input_.Take<uint16_t>() % bytes.size()] ^= static_cast<char>(how >> 2);
    if (how % 4 == 2) bytes.resize(input_.Take<uint16_t>() % (bytes.size() + 8));
    if (how % 4 == 3 && how > 200) bytes = std::string(input_.TakeBytes(input_.Take()));
    damaged_ = damaged_ || bytes != sound;
    return bytes;
  }

  Input& input_;
  std::map<uint64_t, std::string> blocks_;
  bool damaged_ = false;
};

// Derives key and row from a number, so that the result can be checked.
constexpr size_t kRowBytes = 12;
std::string RowOf(Key key) {
  std::string row = BytesOf(key * 0x9e3779b97f4a7c15u) + BytesOf(static_cast<uint32_t>(key));
  return row;
}

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  DamagedStore store(&input);
  DiskRows rows(&store, {{0}, {0}}, kRowBytes);
  std::map<Key, bool> here;
  Status status;
  const auto check = [](Key key, std::span<const std::byte> row) {
    const std::string_view text(reinterpret_cast<const char*>(row.data()), row.size());
    CHECK(text == RowOf(key)) << "a row that nobody has put";
  };
  while (status.ok() && !input.empty()) {
    const uint8_t what = input.Take();
    std::vector<Key> keys;
    std::string row_bytes;
    const Key first = input.Take<uint16_t>() % 512;
    for (Key key = first; key < first + what / 4; ++key) {
      if (what % 4 == 0 && here.contains(key)) continue;
      keys.push_back(key);
      row_bytes += RowOf(key);
    }
    if (what % 4 == 0) {
      status = rows.Put(keys, std::as_bytes(std::span(row_bytes.data(), row_bytes.size())));
      for (const Key key : keys) here[key] = true;
    } else if (what % 4 == 3) {
      size_t seen = 0;
      const auto visit = [&](Key key, std::span<const std::byte> row) {
        check(key, row);
        ++seen;
        return Status();
      };
      status = what % 8 == 3 ? rows.ForEach(visit) : rows.ForEachInOrder(visit);
      if (status.ok()) CHECK_EQ(seen, here.size());
    } else {
      status = rows.Take(keys, [&](Key key, std::span<const std::byte> row) {
        check(key, row);
        CHECK_EQ(here.erase(key), 1u);
      });
    }
    if (status.ok()) CHECK_EQ(rows.size(), here.size());
  }
  CHECK_EQ(status.ok(), !store.damaged()) << status.message();
  return status.ok() ? Verdict::kAccepted : Refused(status, Code::kIoError);
}

std::vector<std::string> Seeds() {
  const auto put = [](char count, uint16_t first) {
    return static_cast<char>(count * 4) + BytesOf(first);
  };
  const auto take = [](char count, uint16_t first) {
    return static_cast<char>(count * 4 + 1) + BytesOf(first);
  };
  const std::string sound(2, '\0');
  return {put(30, 0) + put(30, 40) + take(10, 5) + sound + "\3" + BytesOf(uint16_t{0}) + sound,
          put(30, 0) + take(30, 0) + "\5" + BytesOf(uint16_t{9}),
          put(30, 0) + take(30, 0) + "\2" + BytesOf(uint16_t{9})};
}

const AddTarget added({"disk_rows", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
