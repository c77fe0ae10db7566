// Reads files of images in the IDX format (MNIST) with their labels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/compressed_file.h"

namespace hdps {

// Returns the bytes of an image as OpenImages gives it: one for its label, then one per pixel.
size_t ImageBytes(std::span<const uint32_t> image_shape);

// Returns the path of the labels of a file of images: the same folder and name, with "labels" in
// place of the last "images", and "idx1" in place of a following "idx3". Empty if the name has no
// "images".
std::string LabelsPathOf(const std::string& images);

// Opens the images of a file, each ImageBytes long: the byte of its label (0 without labels), then
// its pixels in the order of the file. An IDX file is 0, 0, the type of its elements (8: bytes),
// the number of axes, the length of each axis as 32 bits, big endian, and the elements, the last
// axis fastest (yann.lecun.com/exdb/mnist). The first axis counts the images, the others are
// image_shape. Both files may be packed.
//
// kInvalidArgument, with the path, for a file of another format or shape, one that is shorter or
// longer than it says, another number of labels, and missing labels if `labels_read`. OpenImages
// checks the first bytes, Read the rest. Read may return parts of images, like any bytes.
Result<std::unique_ptr<UnpackedFile>> OpenImages(FileSystem& files, const std::string& path,
                                                 std::span<const uint32_t> image_shape,
                                                 bool labels_read);

}  // namespace hdps
