// Files of images in the IDX format, that of MNIST, with their labels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/compressed_file.h"

namespace hdps {

// Bytes of an image as OpenImages gives it: one of its label, then one a pixel.
size_t ImageBytes(std::span<const uint32_t> image_shape);

// Where the labels of a file of images are: in the file of the same name with "labels" in place of
// the last "images" and "idx1" in place of "idx3" behind it, in the same folder. Empty for a name
// without "images".
std::string LabelsPathOf(const std::string& images);

// The images of a file, each ImageBytes long: the byte of its label, 0 where there are no labels,
// and its pixels in the order of the file. An IDX file is 0, 0, the type of its elements (8:
// bytes), the number of its axes, the length of each as 32 bits, the highest first, and its
// elements, the last axis the fastest (yann.lecun.com/exdb/mnist). The first axis counts the
// images, the others are image_shape. Both files may be packed.
//
// kInvalidArgument, with the path, for a file that is none of those, of another shape, cut short or
// longer than it says, for labels of another number, and for missing ones where `labels_read`: here
// what the first bytes say, in Read the rest. Read gives parts of images like any other bytes.
Result<std::unique_ptr<UnpackedFile>> OpenImages(FileSystem& files, const std::string& path,
                                                 std::span<const uint32_t> image_shape,
                                                 bool labels_read);

}  // namespace hdps
