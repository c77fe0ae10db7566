// The disk tier keeps what it is given, in order, apart by space, and says when it cannot.
#include "embedding/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/random.h"

namespace hdps {
namespace {

using testing::HasSubstr;

struct StoreCase {
  const char* name;
  bool rocks;
};

class DiskStoreTest : public testing::TestWithParam<StoreCase> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/disk_store_" + std::to_string(NewPeerId().value);
    store_ = Open();
  }
  std::unique_ptr<DiskStore> Open() {
    if (!GetParam().rocks) return NewMemoryDiskStore();
    Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder_, 4 << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return *std::move(store);
  }

  std::string folder_;
  std::unique_ptr<DiskStore> store_;
};

constexpr DiskSpace kSpace{{3}, {1}, 24};

std::vector<std::byte> RowOf(uint64_t seed, uint32_t row_bytes) {
  std::vector<std::byte> row(row_bytes);
  for (uint32_t i = 0; i < row_bytes; ++i) row[i] = static_cast<std::byte>(RandomAt(seed, i));
  return row;
}

// What a space should hold, and the calls that bring it there.
struct Model {
  DiskStore* store;
  DiskSpace space;
  std::map<Key, std::vector<std::byte>> rows;

  void Put(std::vector<Key> keys, uint64_t seed) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<std::byte> bytes;
    for (const Key key : keys) {
      rows[key] = RowOf(seed ^ key, space.row_bytes);
      bytes.insert(bytes.end(), rows[key].begin(), rows[key].end());
    }
    ASSERT_TRUE(store->Put(space, keys, bytes).ok());
  }
  void Erase(const std::vector<Key>& keys) {
    for (const Key key : keys) rows.erase(key);
    ASSERT_TRUE(store->Erase(space, keys).ok());
  }
  void ExpectGet(const std::vector<Key>& keys) {
    std::vector<std::byte> bytes(keys.size() * space.row_bytes, std::byte{0x5a});
    std::vector<uint8_t> found(keys.size(), 7);
    ASSERT_TRUE(store->Get(space, keys, bytes, found).ok());
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto row = rows.find(keys[k]);
      ASSERT_EQ(found[k], row != rows.end() ? 1 : 0) << keys[k];
      const std::vector<std::byte> expected =
          row != rows.end() ? row->second
                            : std::vector<std::byte>(space.row_bytes, std::byte{0x5a});
      EXPECT_EQ(0, std::memcmp(&bytes[k * space.row_bytes], expected.data(), space.row_bytes));
    }
  }
  void ExpectScan() {
    auto expected = rows.begin();
    ASSERT_TRUE(store
                    ->Scan(space,
                           [&](Key key, std::span<const std::byte> row) {
                             EXPECT_NE(expected, rows.end());
                             EXPECT_EQ(key, expected->first);
                             EXPECT_TRUE(std::ranges::equal(row, expected->second));
                             ++expected;
                             return expected != rows.end();
                           })
                    .ok());
    EXPECT_EQ(expected, rows.end());
  }
};

TEST_P(DiskStoreTest, KeepsWhatManyRandomCallsLeave) {
  Model model{store_.get(), kSpace, {}};
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<Key> keys(1 + random.Below(3000));
    for (Key& key : keys) key = MixBits(random.Below(20000));  // Over all 64 bits.
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (round % 5 == 4) {
      model.Erase(keys);
    } else {
      model.Put(keys, random.Next());
    }
    for (Key& key : keys) key = MixBits(random.Below(20000));
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    model.ExpectGet(keys);
  }
  model.ExpectScan();
}

TEST_P(DiskStoreTest, SpacesDoNotMeet) {
  const DiskSpace spaces[] = {{{0}, {0}, 8}, {{0}, {1}, 12}, {{1}, {0}, 16}, {{65535}, {65535}, 4}};
  std::vector<Model> models;
  for (const DiskSpace& space : spaces) models.push_back({store_.get(), space, {}});
  const std::vector<Key> keys = {0, 1, 255, 256, uint64_t{1} << 63, ~uint64_t{0}};
  for (size_t m = 0; m < models.size(); ++m) models[m].Put(keys, m);
  models[2].Erase({0, 255});
  for (Model& model : models) {
    model.ExpectGet(keys);
    model.ExpectScan();
  }
}

TEST_P(DiskStoreTest, ScanEndsWhenTold) {
  Model model{store_.get(), kSpace, {}};
  model.Put({1, 2, 3, 4}, 9);
  std::vector<Key> seen;
  ASSERT_TRUE(store_
                  ->Scan(kSpace,
                         [&](Key key, std::span<const std::byte>) {
                           seen.push_back(key);
                           return seen.size() < 2;
                         })
                  .ok());
  EXPECT_EQ(seen, (std::vector<Key>{1, 2}));
}

INSTANTIATE_TEST_SUITE_P(Stores, DiskStoreTest,
                         testing::Values(StoreCase{"rocks", true}, StoreCase{"memory", false}),
                         [](const auto& store) { return store.param.name; });

std::string NewFolder() {
  return testing::TempDir() + "/spill_" + std::to_string(NewPeerId().value);
}

TEST(RocksDiskStore, BeginsEmptyAndLeavesNothing) {
  const std::string folder = NewFolder();
  {
    Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 4 << 20});
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_TRUE(std::filesystem::exists(folder));
    std::filesystem::copy(folder, folder + "_crashed", std::filesystem::copy_options::recursive);
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  // What a process left that ended without closing.
  std::filesystem::rename(folder + "_crashed", folder);
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_TRUE(store.ok()) << store.status().message();
  size_t rows = 0;
  ASSERT_TRUE((*store)
                  ->Scan(kSpace,
                         [&](Key, std::span<const std::byte>) {
                           ++rows;
                           return true;
                         })
                  .ok());
  EXPECT_EQ(rows, 0u);
}

TEST(RocksDiskStore, RefusesAFolderInUse) {
  const std::string folder = NewFolder();
  const Result<std::unique_ptr<DiskStore>> first = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_TRUE(first.ok());
  const Result<std::unique_ptr<DiskStore>> second = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(second.status().message(), HasSubstr("cluster.spill_path"));
  EXPECT_THAT(second.status().message(), HasSubstr(folder));
  EXPECT_TRUE(std::filesystem::exists(folder));
}

TEST(RocksDiskStore, RefusesAFolderThatCannotBe) {
  const Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({"/proc/spill", 4 << 20});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(store.status().message(), HasSubstr("/proc/spill"));
}

// The files vanish under it, as on a disk that fails: an error with the folder and the mend.
TEST(RocksDiskStore, SaysWhenTheDiskFails) {
  const std::string folder = NewFolder();
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_TRUE(store.ok());
  std::filesystem::remove_all(folder);
  Status status;
  const std::vector<std::byte> rows(1000 * kSpace.row_bytes);
  for (Key first = 0; first < 4000000 && status.ok(); first += 1000) {
    std::vector<Key> keys(1000);
    for (size_t k = 0; k < keys.size(); ++k) keys[k] = first + k;
    status = (*store)->Put(kSpace, keys, rows);
  }
  ASSERT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr(folder));
  EXPECT_THAT(status.message(), HasSubstr("free space there"));
}

// Rows on their way to disk and what finds those that are there stay within what was given.
TEST(RocksDiskStore, MemoryStaysBounded) {
  constexpr uint64_t kMemory = 8 << 20;
  constexpr size_t kRows = 400000;
  const DiskSpace space{{0}, {0}, 200};
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({NewFolder(), kMemory});
  ASSERT_TRUE(store.ok());
  const std::vector<std::byte> rows = RowOf(1, 2000 * space.row_bytes);
  uint64_t most = 0;
  for (size_t first = 0; first < kRows; first += 2000) {
    std::vector<Key> keys(2000);
    for (size_t k = 0; k < keys.size(); ++k) keys[k] = MixBits(first + k);
    std::ranges::sort(keys);
    ASSERT_TRUE((*store)->Put(space, keys, rows).ok());
    most = std::max(most, (*store)->memory_bytes());
  }
  EXPECT_LE(most, kMemory + static_cast<uint64_t>(kDiskIndexBytesPerRow * kRows));
  EXPECT_GE((*store)->disk_bytes(), kRows * space.row_bytes / 2);
}

}  // namespace
}  // namespace hdps
