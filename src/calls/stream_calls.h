// Frames of one stream: reads its branches in parts, and gives them to a StackMachine.
#pragma once

#include <cstdint>
#include <memory>

#include "calls/function_table.h"
#include "calls/stack_machine.h"
#include "calls/symbol_facts.h"
#include "columns/read/reader.h"

namespace ptkit::calls {

class StreamCalls {
 public:
  struct Input {
    columns::TableReader::Input reader;  // of this one stream
    const image::Image& image;
    const symbol::Symbols& symbols;
    columns::Selection selection;           // of threads, processes and spaces
    bool time = true;                       // frames have times
    const flow::JumpTest* jumps = nullptr;  // tail calls; null: all jumps are looked at
    Tails tails = Tails::NESTED;
    By by = By::FUNCTION;  // FrameFlag RECURSIVE, and numbers of groups
  };
  // What `input` refers to, and `sink`, must outlive this.
  StreamCalls(Input input, FrameSink& sink);

  enum class Step : std::uint8_t { MORE, END, NO_MEMORY };
  // Works for a few milliseconds at most.
  [[nodiscard]] Step step();
  [[nodiscard]] const FunctionTable& functions() const noexcept { return functions_; }
  [[nodiscard]] const FrameGroups& groups() const noexcept { return groups_; }
  [[nodiscard]] std::uint64_t instructions() const noexcept { return reader_->instructions(); }
  [[nodiscard]] const columns::TableReader& reader() const noexcept { return *reader_; }
  void cancel() noexcept { reader_->cancel(); }

 private:
  void feed(columns::Batch& rows);

  FunctionTable functions_;
  FrameGroups groups_;
  SymbolFacts facts_;
  StackMachine machine_;
  std::unique_ptr<columns::TableReader> reader_;
  Owner owner_;
  calls::Step last_;  // counts at the end of the rows so far
};

}  // namespace ptkit::calls
