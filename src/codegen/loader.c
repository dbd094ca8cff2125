// A relocator for the few things that the code generator writes: sections in memory, x86-64 relocations against
// sections, own functions and imported C functions.
#include "codegen/loader.h"

#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os.h"

enum {
  CHUNK = 1 << 20,      // address space only: pages of the file exist once written
  CODE_ALIGNMENT = 64,  // a cache line, and the widest constant
  SECTIONS_MAX = 64,
  STUB_SIZE = 16,  // jmp *0(%rip), 2 bytes of padding, address
  OBJECT_MAX = 16 << 20,
};

// ---- executable memory -------------------------------------------------------------------------------------
static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uint8_t* base;  // mapped read + execute
  size_t size, used;
  int fd;
  pid_t owner;  // after fork the child must not write into pages it shares with its parent
} chunk;        // guarded by code_lock

static bool new_chunk(size_t size) {
  const int fd = (int)syscall(SYS_memfd_create, "tn-code", 1u /* MFD_CLOEXEC */);
  if (fd < 0) return false;
  void* base = ftruncate(fd, (off_t)size) == 0
                   ? mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
  if (base == MAP_FAILED) {
    close(fd);
    return false;
  }
  if (chunk.base) close(chunk.fd);  // its mapping stays
  chunk.base = base;
  chunk.size = size;
  chunk.used = 0;
  chunk.fd = fd;
  chunk.owner = getpid();
  return true;
}

// Reserves |size| bytes of executable addresses; *out_fd >= 0 when they are written through a file at *out_offset.
static uint8_t* reserve(size_t size, int* out_fd, off_t* out_offset) {
  size = (size + CODE_ALIGNMENT - 1) & ~(size_t)(CODE_ALIGNMENT - 1);
  uint8_t* place = NULL;
  pthread_mutex_lock(&code_lock);
  const bool fits = chunk.base && chunk.owner == getpid() && chunk.size - chunk.used >= size;
  if (fits || new_chunk(size > CHUNK ? (size + 4095) & ~(size_t)4095 : CHUNK)) {
    place = chunk.base + chunk.used;
    *out_fd = dup(chunk.fd);
    *out_offset = (off_t)chunk.used;
    chunk.used += size;
    if (*out_fd < 0) place = NULL;
  }
  pthread_mutex_unlock(&code_lock);
  if (place) return place;
  // Systems that forbid executable files in memory: pages of its own, written before they become executable.
  *out_fd = -1;
  void* pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

static tn_status_t write_code(uint8_t* place, const uint8_t* image, size_t size, int fd,
                              off_t offset) {
  if (fd < 0) {
    memcpy(place, image, size);
    if (mprotect(place, size, PROT_READ | PROT_EXEC) != 0)
      return TN_ERROR(TN_UNAVAILABLE, "loader: the system refuses executable memory");
    return TN_OK;
  }
  for (size_t done = 0; done < size;) {
    const ssize_t n = pwrite(fd, image + done, size - done, offset + (off_t)done);
    if (n <= 0) {
      close(fd);
      return TN_ERROR(TN_RESOURCE_EXHAUSTED, "loader: no memory for %zu bytes of code", size);
    }
    done += (size_t)n;
  }
  close(fd);
  return TN_OK;
}

// ---- the object --------------------------------------------------------------------------------------------
typedef struct tn_object_view {
  const uint8_t* data;
  size_t size;
  const Elf64_Ehdr* header;
  const Elf64_Shdr* sections;
  int section_count;
  size_t offset[SECTIONS_MAX];  // of SHF_ALLOC sections in the image; SIZE_MAX: not loaded
  size_t image_size;            // sections, then one stub per import relocation
  size_t stub_count;
} tn_object_view_t;

#define DAMAGED(...) return TN_ERROR(TN_DATA_LOSS, "loader: " __VA_ARGS__)

static bool in_file(const tn_object_view_t* o, uint64_t offset, uint64_t size) {
  return offset <= o->size && size <= o->size - offset;
}
static size_t align_up(size_t size, size_t alignment) {
  return (size + alignment - 1) & ~(alignment - 1);
}

static tn_status_t read_object(const void* data, size_t size, tn_object_view_t* o) {
  *o = (tn_object_view_t){.data = data, .size = size};
  if (size < sizeof(Elf64_Ehdr) || size > OBJECT_MAX || (uintptr_t)data % 8 != 0)
    DAMAGED("no object in %zu bytes", size);
  o->header = data;
  const Elf64_Ehdr* h = o->header;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
      h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL || h->e_machine != EM_X86_64)
    DAMAGED("not a relocatable x86-64 object");
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum > SECTIONS_MAX ||
      h->e_shoff % 8 != 0 || !in_file(o, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
    DAMAGED("section table of %d entries is outside the object", h->e_shnum);
  o->sections = (const Elf64_Shdr*)(o->data + h->e_shoff);
  o->section_count = h->e_shnum;
  for (int i = 0; i < o->section_count; ++i) {
    const Elf64_Shdr* s = &o->sections[i];
    o->offset[i] = SIZE_MAX;
    if (s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && !in_file(o, s->sh_offset, s->sh_size))
      DAMAGED("section %d is outside the object", i);
    if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0) continue;
    if (s->sh_type == SHT_NOBITS || (s->sh_flags & SHF_WRITE)) DAMAGED("section %d is writable", i);
    if (s->sh_addralign > CODE_ALIGNMENT || (s->sh_addralign & (s->sh_addralign - 1)))
      DAMAGED("section %d wants alignment %llu", i, (unsigned long long)s->sh_addralign);
    o->image_size = align_up(o->image_size, s->sh_addralign ? s->sh_addralign : 1);
    o->offset[i] = o->image_size;
    o->image_size += s->sh_size;
  }
  o->image_size = align_up(o->image_size, STUB_SIZE);
  for (int i = 0; i < o->section_count; ++i) {
    const Elf64_Shdr* s = &o->sections[i];
    if (s->sh_type == SHT_REL) DAMAGED("section %d has relocations without addends", i);
    if (s->sh_type != SHT_RELA || s->sh_info >= (unsigned)o->section_count ||
        o->offset[s->sh_info] == SIZE_MAX)
      continue;
    if (s->sh_entsize != sizeof(Elf64_Rela) || s->sh_offset % 8 != 0 ||
        s->sh_link >= (unsigned)o->section_count)
      DAMAGED("relocations in section %d are malformed", i);
    o->stub_count += s->sh_size / sizeof(Elf64_Rela);
  }
  return TN_OK;
}

static tn_status_t symbol_table(const tn_object_view_t* o, unsigned section,
                                const Elf64_Sym** out_symbols, size_t* out_count,
                                const char** out_names, size_t* out_names_size) {
  const Elf64_Shdr* s = &o->sections[section];
  if (s->sh_type != SHT_SYMTAB || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8 != 0 ||
      s->sh_link >= (unsigned)o->section_count)
    DAMAGED("section %u is no symbol table", section);
  const Elf64_Shdr* names = &o->sections[s->sh_link];
  if (names->sh_type != SHT_STRTAB || names->sh_size == 0 ||
      o->data[names->sh_offset + names->sh_size - 1] != 0)
    DAMAGED("symbol names are malformed");
  *out_symbols = (const Elf64_Sym*)(o->data + s->sh_offset);
  *out_count = s->sh_size / sizeof(Elf64_Sym);
  *out_names = (const char*)o->data + names->sh_offset;
  *out_names_size = names->sh_size;
  return TN_OK;
}

// Writes the value of one relocation. |image| will run at |place|.
static tn_status_t relocate(const tn_object_view_t* o, uint8_t* image, const uint8_t* place,
                            unsigned target, const Elf64_Rela* r, unsigned symbols_section,
                            uint8_t* stub) {
  const Elf64_Sym* symbols;
  const char* names;
  size_t symbol_count, names_size;
  TN_TRY(symbol_table(o, symbols_section, &symbols, &symbol_count, &names, &names_size));
  const size_t index = ELF64_R_SYM(r->r_info);
  const unsigned type = ELF64_R_TYPE(r->r_info);
  if (index >= symbol_count) DAMAGED("relocation of symbol %zu of %zu", index, symbol_count);
  const Elf64_Sym* symbol = &symbols[index];
  const size_t width = type == R_X86_64_64 ? 8 : 4;
  const uint64_t section_size = o->sections[target].sh_size;
  if (r->r_offset > section_size || width > section_size - r->r_offset)
    DAMAGED("relocation outside its section");
  const size_t at = o->offset[target] + r->r_offset;
  uint64_t value;
  if (symbol->st_shndx == SHN_UNDEF) {
    if (symbol->st_name >= names_size) DAMAGED("symbol without a name");
    void* import = tn_loader_import(names + symbol->st_name);
    if (!import) DAMAGED("%s is no function that kernels may call", names + symbol->st_name);
    if (type == R_X86_64_64) {
      value = (uint64_t)(uintptr_t)import;
    } else {
      static const uint8_t jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0x66, 0x90};  // jmp *2(%rip); nop
      uint64_t address = (uint64_t)(uintptr_t)import;
      memcpy(stub, jump, 8);
      memcpy(stub + 8, &address, 8);
      const bool wants_slot =
          type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
      value = (uint64_t)(uintptr_t)place + (uint64_t)(stub - image) + (wants_slot ? 8 : 0);
    }
  } else {
    if (symbol->st_shndx >= o->section_count || o->offset[symbol->st_shndx] == SIZE_MAX)
      DAMAGED("symbol in section %d, which is not loaded", symbol->st_shndx);
    value = (uint64_t)(uintptr_t)place + o->offset[symbol->st_shndx] + symbol->st_value;
    if (type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX) {
      memcpy(stub + 8, &value, 8);
      value = (uint64_t)(uintptr_t)place + (uint64_t)(stub - image) + 8;
    }
  }
  value += (uint64_t)r->r_addend;
  switch (type) {
    case R_X86_64_64: memcpy(image + at, &value, 8); return TN_OK;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: {
      const int64_t distance = (int64_t)(value - ((uint64_t)(uintptr_t)place + at));
      const int32_t word = (int32_t)distance;
      if (word != distance) DAMAGED("relocation out of reach");
      memcpy(image + at, &word, 4);
      return TN_OK;
    }
    default: DAMAGED("relocation type %u is unknown", type);
  }
}

// Builds the image that runs at |place|; finds the global function.
static tn_status_t build_image(const tn_object_view_t* o, uint8_t* image, const uint8_t* place,
                               size_t* out_entry) {
  for (int i = 0; i < o->section_count; ++i) {
    const Elf64_Shdr* s = &o->sections[i];
    if (o->offset[i] != SIZE_MAX) memcpy(image + o->offset[i], o->data + s->sh_offset, s->sh_size);
  }
  uint8_t* stub = image + o->image_size;
  *out_entry = SIZE_MAX;
  for (int i = 0; i < o->section_count; ++i) {
    const Elf64_Shdr* s = &o->sections[i];
    if (s->sh_type == SHT_RELA && s->sh_info < (unsigned)o->section_count &&
        o->offset[s->sh_info] != SIZE_MAX) {
      const Elf64_Rela* relocations = (const Elf64_Rela*)(o->data + s->sh_offset);
      for (size_t r = 0; r < s->sh_size / sizeof(Elf64_Rela); ++r, stub += STUB_SIZE)
        TN_TRY(relocate(o, image, place, s->sh_info, &relocations[r], s->sh_link, stub));
    }
    if (s->sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym* symbols;
    const char* names;
    size_t count, names_size;
    TN_TRY(symbol_table(o, (unsigned)i, &symbols, &count, &names, &names_size));
    for (size_t j = 0; j < count; ++j) {
      const Elf64_Sym* symbol = &symbols[j];
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
          ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL)
        continue;
      if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= o->section_count) continue;
      const Elf64_Shdr* home = &o->sections[symbol->st_shndx];
      if (o->offset[symbol->st_shndx] == SIZE_MAX || !(home->sh_flags & SHF_EXECINSTR) ||
          symbol->st_value >= home->sh_size)
        DAMAGED("the function is outside the code");
      *out_entry = o->offset[symbol->st_shndx] + symbol->st_value;
    }
  }
  if (*out_entry == SIZE_MAX) DAMAGED("the object has no function");
  return TN_OK;
}

tn_status_t tn_loader_load(const void* object, size_t size, void** out_function,
                           size_t* out_code_size) {
  *out_function = NULL;
  *out_code_size = 0;
  tn_object_view_t view;
  TN_TRY(read_object(object, size, &view));
  const size_t total = view.image_size + view.stub_count * STUB_SIZE;
  if (total > OBJECT_MAX) DAMAGED("%zu bytes of code", total);
  uint8_t* image = calloc(1, total ? total : 1);
  if (!image) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "loader: no memory for %zu bytes", total);
  // Check everything against a made-up place before executable memory is spent on the object.
  size_t entry;
  tn_status_t status = build_image(&view, image, image, &entry);
  if (!status) {
    int fd;
    off_t offset = 0;
    uint8_t* place = reserve(total, &fd, &offset);
    if (!place) {
      status = TN_ERROR(TN_RESOURCE_EXHAUSTED, "loader: no memory for %zu bytes of code", total);
    } else {
      memset(image, 0, total);
      status = build_image(&view, image, place, &entry);
      if (!status) {
        status = write_code(place, image, total, fd, offset);
      } else if (fd >= 0) {
        close(fd);
      }
      if (!status) {
        *out_function = place + entry;
        *out_code_size = total;
      }
    }
  }
  free(image);
  return status;
}
