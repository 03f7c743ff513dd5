import type { Worker } from "node:cluster";
import type { Question, ToWorker } from "./messages.ts";

/** How long a process may take to answer: one whose event loop is blocked answers no client either. */
const answersWithinMs = 2_000;

interface Inquiry {
  readonly waitsFor: Set<number>;
  readonly answers: unknown[];
  readonly end: () => void;
}

/** Carries what one process asks all others, and their answers. */
export interface Inquiries {
  ask(asker: Worker, id: number, question: Question, others: readonly Worker[]): void;
  answer(worker: Worker, id: number, answer: unknown): void;
  /** A process that has ended answers nothing. */
  forget(worker: Worker): void;
}

export function createInquiries(tell: (worker: Worker, message: ToWorker) => void): Inquiries {
  const open = new Map<number, Inquiry>();
  let count = 0;

  const settle = ({ waitsFor, end }: Inquiry) => {
    if (waitsFor.size === 0) end();
  };

  return {
    ask: (asker, askersId, question, others) => {
      const id = count;
      count += 1;
      const answers: unknown[] = [];
      const end = () => {
        clearTimeout(late);
        if (open.delete(id)) tell(asker, { tiltyard: "answers", id: askersId, answers });
      };
      const late = setTimeout(end, answersWithinMs);
      const inquiry = { waitsFor: new Set(others.map((other) => other.id)), answers, end };
      open.set(id, inquiry);
      for (const other of others) tell(other, { tiltyard: "question", id, question });
      settle(inquiry);
    },
    answer: (worker, id, answer) => {
      const inquiry = open.get(id);
      if (!inquiry?.waitsFor.delete(worker.id)) return;
      inquiry.answers.push(answer);
      settle(inquiry);
    },
    forget: (worker) => {
      for (const inquiry of open.values()) if (inquiry.waitsFor.delete(worker.id)) settle(inquiry);
    },
  };
}
