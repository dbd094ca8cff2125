// Inside of the printer.
#ifndef TN_IR_TEXT_PRINT_H_
#define TN_IR_TEXT_PRINT_H_

#include "ir/text.h"

typedef struct tn_printer {
  tn_text_t* text;
  const int32_t* numbers;  // by node id; -1: no line
} tn_printer_t;

// Numbers of the nodes that the results need, as tn_graph_print gives them; the caller frees them. NULL: no memory.
int32_t* tn_print_numbers(const tn_graph_t* graph);
void tn_print_value(tn_printer_t* printer, const tn_node_t* node);
// The line (or lines) of one node.
void tn_print_node(tn_printer_t* printer, const tn_node_t* node);
// Name of the function with a composite's decomposition.
void tn_print_body_name(const tn_node_t* composite, int number, char* buffer, size_t size);

#endif  // TN_IR_TEXT_PRINT_H_
