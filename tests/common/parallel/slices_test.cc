// Tests slices of tensors of any number of axes, and tuples of dataset_strategy.
#include "common/parallel/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Expects that every element belongs to one rank and comes back to its place.
void ExpectDividesAll(const std::vector<size_t>& shape, const std::vector<uint32_t>& strategy) {
  size_t size = 1;
  for (const size_t axis : shape) size *= axis;
  std::vector<float> tensor(size), again(size, -1);
  std::iota(tensor.begin(), tensor.end(), 0.0f);
  uint32_t ranks = 1;
  for (const uint32_t parts : strategy) ranks *= parts;
  std::vector<int> owners(size, 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<Cut> slice = SliceOf(shape, strategy, rank);
    std::vector<float> part(SizeOf(slice));
    TakeSlice(shape, slice, tensor.data(), part.data());
    for (const float element : part) ++owners[static_cast<size_t>(element)];
    PutSlice(shape, slice, part.data(), again.data());
  }
  EXPECT_EQ(owners, std::vector<int>(size, 1));
  EXPECT_EQ(again, tensor);
}

TEST(SlicesTest, OfImagesAreDisjointAndTogetherAll) {
  const std::vector<size_t> images = {5, 3, 7, 9};  // [n, c, h, w]
  for (const std::vector<uint32_t>& strategy : std::vector<std::vector<uint32_t>>{
           {1, 1, 1, 8}, {4, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 7, 1}, {2, 1, 3, 2}, {8, 1, 1, 1}}) {
    ExpectDividesAll(images, strategy);
  }
  ExpectDividesAll({6}, {4});
  ExpectDividesAll({3, 39}, {1, 4});
  ExpectDividesAll({0, 4}, {1, 2});
}

TEST(SlicesTest, AreThoseOfTheRanksDigits) {
  const std::vector<size_t> images = {4, 3, 28, 28};
  EXPECT_THAT(SliceOf(images, std::vector<uint32_t>{2, 1, 1, 4}, 6),
              ElementsAre(Cut{2, 2}, Cut{0, 3}, Cut{0, 28}, Cut{14, 7}));
  std::vector<size_t> fields;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    fields.push_back(
        SliceOf(std::vector<size_t>{100, 39}, std::vector<uint32_t>{1, 4}, rank)[1].size);
  }
  EXPECT_THAT(fields, ElementsAre(10, 10, 10, 9));
}

TEST(SlicesTest, KeepTheOrderOfTheTensor) {
  const std::vector<size_t> shape = {2, 4};
  const std::vector<float> tensor = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<Cut> slice = SliceOf(shape, std::vector<uint32_t>{1, 2}, 1);
  std::vector<float> part(SizeOf(slice));
  TakeSlice(shape, slice, tensor.data(), part.data());
  EXPECT_THAT(part, ElementsAre(2, 3, 6, 7));
}

// With the cut axis first, the elements of a slice are a run.
TEST(SlicesTest, AreRunsOfTheOrderWithTheirAxisFirst) {
  const std::vector<size_t> image = {3, 7, 9};
  const size_t size = 3 * 7 * 9;
  std::vector<float> tensor(size);
  std::iota(tensor.begin(), tensor.end(), 0.0f);
  const AxisFirst orders[] = {{1, 7 * 9}, {3, 9}, {3 * 7, 1}};
  for (size_t axis = 0; axis < image.size(); ++axis) {
    std::vector<uint32_t> strategy(image.size(), 1);
    strategy[axis] = 3;
    const AxisFirst& order = orders[axis];
    EXPECT_EQ(order.each() * image[axis], size);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const std::vector<Cut> slice = SliceOf(image, strategy, rank);
      std::vector<float> part(SizeOf(slice)), run;
      TakeSlice(image, slice, tensor.data(), part.data());
      const size_t begin = slice[axis].begin * order.each();
      for (size_t at = begin; at < begin + part.size(); ++at) {
        run.push_back(static_cast<float>(order.IndexOf(at, size)));
      }
      EXPECT_THAT(run, testing::UnorderedElementsAreArray(part)) << axis << " " << rank;
    }
  }
}

TEST(DatasetSlicesTest, AtMostOneAxisOfAnInput) {
  EXPECT_EQ(ProblemOfSlices({{4, 1}}, 4), "");
  EXPECT_EQ(ProblemOfSlices({{1, 4}}, 4), "");
  EXPECT_EQ(ProblemOfSlices({{1, 4}, {4, 1}}, 0), "");
  EXPECT_EQ(ProblemOfSlices({{1, 4}, {1, 1}}, 4), "");
  EXPECT_EQ(ProblemOfSlices({{1, 1}}, 4), "");
  EXPECT_THAT(ProblemOfSlices({{2, 2}}, 4), HasSubstr("[2, 2] cuts two axes of one input"));
  EXPECT_THAT(ProblemOfSlices({{1, 3}}, 4), HasSubstr("3 parts for 4 workers"));
  EXPECT_THAT(ProblemOfSlices({{1, 4}, {1, 2}}, 4), HasSubstr("as many parts, 4"));
  EXPECT_THAT(ProblemOfSlices({{4}}, 4), HasSubstr("[4] has 1 axis;"));
  EXPECT_THAT(ProblemOfSlices({{}}, 4), HasSubstr("[] has 0 axes"));
  EXPECT_THAT(ProblemOfSlices({{1, 4}, {1, 4}, {1, 4}}, 4), HasSubstr("3 tuples"));
  EXPECT_THAT(ProblemOfSlices({{1, 1, 1, 4}}, 4), HasSubstr("has 4 axes; an input has two"));
}

TEST(DatasetSlicesTest, ImagesHaveTheirAxesOrTwo) {
  const std::vector<uint32_t> image = {3, 28, 28};
  for (const std::vector<uint32_t>& tuple : std::vector<std::vector<uint32_t>>{
           {1, 1, 1, 8}, {8, 1, 1, 1}, {1, 1, 8, 1}, {1, 8}, {8, 1}}) {
    EXPECT_EQ(ProblemOfSlices({tuple}, 8, image), "");
  }
  EXPECT_EQ(ProblemOfSlices({{1, 1}, {1, 1, 1, 8}}, 8, image), "");
  EXPECT_THAT(ProblemOfSlices({{1, 1, 1, 8}, {1, 1}}, 8, image), HasSubstr("has 4 axes"));
  EXPECT_THAT(ProblemOfSlices({{1, 1, 8}}, 8, image),
              HasSubstr("[1, 1, 8] has 3 axes; images of data.image_shape [3, 28, 28] have 4"));
  EXPECT_THAT(ProblemOfSlices({{1, 1, 2, 2}}, 4, image), HasSubstr("cuts two axes of one input"));
  EXPECT_THAT(ProblemOfSlices({{2, 1, 1, 2}}, 4, image), HasSubstr("cuts two axes of one input"));
  EXPECT_THAT(ProblemOfSlices({{2, 2}}, 4, image), HasSubstr("cuts two axes of one input"));
  EXPECT_THAT(ProblemOfSlices({{1, 8, 1, 1}}, 8, image), HasSubstr("8 parts of an axis of 3"));
  EXPECT_THAT(ProblemOfSlices({{1, 1, 1, 8}}, 4, image), HasSubstr("8 parts for 4 workers"));
}

}  // namespace
}  // namespace hdps
