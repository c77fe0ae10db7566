// Tests chunks of dense tensors over ranks: every chunk once, evenly, with whole groups as copies.
#include "worker/dense/dense_shards.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace hdps {
namespace {

std::vector<DenseTensor> TensorsOf(const std::vector<size_t>& floats) {
  std::vector<DenseTensor> tensors;
  size_t chunk = 0;
  for (const size_t size : floats) {
    DenseTensor& tensor = tensors.emplace_back();
    tensor.shape = {static_cast<uint32_t>(size)};
    tensor.first_chunk = chunk;
    tensor.num_chunks = (size + kDenseChunkFloats - 1) / kDenseChunkFloats;
    tensor.layer = static_cast<uint32_t>(tensors.size() - 1);
    chunk += tensor.num_chunks;
  }
  return tensors;
}

Job JobOf(const std::vector<DenseTensor>& tensors, int32_t shard_size) {
  Job job;
  job.model.layers.resize(tensors.size());
  job.parallel.optimizer = {true, shard_size, 64, 1};
  return job;
}

TEST(DenseShardsTest, EveryChunkIsReducedOnceAndUpdatedOnceAGroup) {
  const std::vector<DenseTensor> tensors =
      TensorsOf({16384, 100, 17000, 50000, 16385, 99999, 16383, 123456});
  for (const uint32_t size : {2u, 3u, 4u, 6u, 12u}) {
    for (const int32_t places : {-1, 2, 3}) {
      if (places > 0 && size % static_cast<uint32_t>(places) != 0) continue;
      const Job job = JobOf(tensors, places);
      std::map<Key, uint32_t> reduced, updated, stored;
      std::vector<size_t> pieces(size);
      size_t groups = 0;
      for (uint32_t rank = 0; rank < size; ++rank) {
        const DenseShards shards(job, tensors, rank, size);
        groups = size / shards.places();
        for (const Key key : shards.OwnKeys()) ++updated[key];
        for (const Key key : shards.StoredKeys()) ++stored[key];
        const std::vector<Key> own = shards.OwnKeys();
        for (uint32_t t = 0; t < tensors.size(); ++t) {
          EXPECT_EQ(shards.split(t), tensors[t].size() >= 16384) << "64 KiB are split, less is not";
          const Cut of_own = shards.OwnOf(t);
          for (size_t c = 0; c < of_own.size; ++c) {
            EXPECT_EQ(own[shards.OwnAt(t) + c], Key{t} << 32 | (of_own.begin + c));
          }
          if (!shards.split(t)) continue;
          const Cut piece = shards.PieceOf(t, rank), part = shards.PartOf(t, shards.place());
          EXPECT_GE(piece.begin, part.begin);
          EXPECT_LE(piece.end(), part.end());
          for (size_t c = piece.begin; c < piece.end(); ++c) ++reduced[Key{t} << 32 | c];
          pieces[rank] += piece.size;
        }
      }
      size_t chunks = 0;
      for (uint32_t t = 0; t < tensors.size(); ++t) {
        for (size_t c = 0; c < tensors[t].num_chunks; ++c, ++chunks) {
          const Key key = Key{t} << 32 | c;
          const bool split = tensors[t].size() >= 16384;
          EXPECT_EQ(reduced[key], split ? 1u : 0u);
          EXPECT_EQ(updated[key], split ? groups : size);
          EXPECT_EQ(stored[key], 1u);
        }
      }
      EXPECT_EQ(stored.size(), chunks);
      const auto [least, most] = std::ranges::minmax(pieces);
      EXPECT_LE(most - least, 1u) << size << " ranks, places of " << places;
    }
  }
}

TEST(DenseShardsTest, OneRankAndLayersOfOnesOwnSplitNothing) {
  const std::vector<DenseTensor> tensors = TensorsOf({40000, 50000});
  Job job = JobOf(tensors, -1);
  EXPECT_FALSE(DenseShards(job, tensors, 0, 1).any());
  EXPECT_TRUE(DenseShards(job, tensors, 1, 2).any());
  job.model.layers[0].layerwise_parallel = true;
  EXPECT_FALSE(DenseShards(job, tensors, 1, 2).split(0));
  EXPECT_TRUE(DenseShards(job, tensors, 1, 2).split(1));
  job.parallel.optimizer.weight_shard_size = 1;
  EXPECT_FALSE(DenseShards(job, tensors, 1, 2).any());
  job.parallel.optimizer.enabled = false;
  EXPECT_FALSE(DenseShards(JobOf(tensors, 1), tensors, 1, 4).any());
}

// What servers or a device update is nobody's here, split or whole, and shifts the others.
TEST(DenseShardsTest, TensorsElsewhereHaveNoChunkHere) {
  const std::vector<DenseTensor> tensors = TensorsOf({40000, 50000, 3000, 60000});
  const Job job = JobOf(tensors, -1);
  const std::vector<bool> elsewhere = {true, false, false, true};
  size_t chunks = 0;
  for (const uint32_t rank : {0u, 1u}) {
    const DenseShards shards(job, tensors, rank, 2, elsewhere);
    EXPECT_FALSE(shards.all_here());
    EXPECT_TRUE(shards.split(1));
    EXPECT_FALSE(shards.split(0));
    for (const Key key : shards.OwnKeys()) EXPECT_FALSE(elsewhere[key >> 32]);
    EXPECT_EQ(shards.OwnOf(0).size, 0u);
    EXPECT_EQ(shards.OwnAt(2), 0u) << "whole tensors come first";
    EXPECT_EQ(shards.OwnAt(1), tensors[2].num_chunks);
    chunks += shards.OwnOf(1).size;
  }
  EXPECT_EQ(chunks, tensors[1].num_chunks);
  EXPECT_TRUE(DenseShards(tensors).all_here());
  EXPECT_TRUE(DenseShards(job, tensors, 0, 1).all_here());
}

}  // namespace
}  // namespace hdps
