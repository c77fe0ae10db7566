// Declares the three structs of the Arrow C data and stream interfaces, and nothing else of Arrow.
//
// The names, the order of the members and their meaning are those of the specification
// (arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html). Whoever fills a
// struct sets `release`; whoever owns it calls that once, and a struct whose `release` is null is
// empty.
#pragma once

#include <cstdint>

// The guards are those of the specification, so that a program may include Arrow's header as well.
extern "C" {

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

// Describes the type of a column, or of a table as a struct of columns.
struct ArrowSchema {
  const char* format;    // "l" for int64, "u" for text, ...
  const char* name;      // May be null.
  const char* metadata;  // May be null.
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;  // Type of the values if the cells are indices; else null.
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

// Holds the cells of a column, or of a batch of rows as a struct of columns.
struct ArrowArray {
  int64_t length;
  int64_t null_count;  // -1 if it was not counted.
  int64_t offset;      // Cells of the buffers before the first one.
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

// Gives the schema of a table and then its batches, one by one. The functions return 0 or an errno.
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  // Gives a batch, or an empty struct after the last one.
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);  // May return null.
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE

}  // extern "C"
